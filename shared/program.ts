import { ConfigError, type Environment, readEnvironment } from './config.js';

/**
 * Runs one of our programs. What keeps it from starting goes to stderr, and the exit code is 1: configuration problems
 * with their names, anything else without its message, because libraries put addresses and passwords into those.
 */
export async function runProgram(program: (environment: Environment) => Promise<void> | void): Promise<void> {
  try {
    await program(readEnvironment());
  } catch (error) {
    process.stderr.write(`${describe(error)}\n`);
    process.exit(1);
  }
}

function describe(error: unknown): string {
  if (error instanceof ConfigError) return error.message;
  if (!(error instanceof Error)) return 'failed';
  const code = 'code' in error ? ` (${String(error.code)})` : '';
  return [
    `${error.name}${code}`,
    ...(error.stack?.replace(error.message, '').split('\n').slice(1) ?? []),
  ].join('\n');
}

/** Tells a parent process that spawned this one with an IPC channel which port it listens on; else does nothing. */
export function announceListening(port: number): void {
  process.send?.({ type: 'listening', port });
}
