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

/** What a program tells a parent that spawned it with an IPC channel: where it listens, then that it can serve. */
export type Announcement = { type: 'listening'; port: number } | { type: 'ready' };

/** Tells the parent process; does nothing for a program that was started without an IPC channel. */
export function announce(announcement: Announcement): void {
  process.send?.(announcement);
}
