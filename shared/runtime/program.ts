import { constants } from 'node:os';
import { ConfigError, type Environment, readEnvironment } from '../config/config.js';
import { stackFrames } from './log.js';

/** Thrown by a program that cannot start for a reason that its message, safe to show, tells in full. */
export class StartupError extends Error {
  override readonly name = 'StartupError';
}

/**
 * Runs one of our programs. What keeps it from starting goes to stderr, and the exit code is 1: configuration problems
 * with their names, anything else without its message, because libraries put addresses and passwords into those.
 */
export async function runProgram(program: (environment: Environment) => Promise<void> | void): Promise<void> {
  if (process.pid === 1)
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, endUnlessAwaited);
  try {
    await program(readEnvironment());
  } catch (error) {
    process.stderr.write(`${describe(error)}\n`);
    process.exit(1);
  }
}

/**
 * The first process of a container has no default action for signals: until the program listens itself, and for one that
 * never does, `docker stop` would have to kill.
 */
function endUnlessAwaited(signal: NodeJS.Signals): void {
  if (process.listenerCount(signal) === 1) process.exit(128 + constants.signals[signal]);
}

function describe(error: unknown): string {
  if (error instanceof ConfigError || error instanceof StartupError) return error.message;
  if (!(error instanceof Error)) return 'failed';
  const code = 'code' in error ? ` (${String(error.code)})` : '';
  return [`${error.name}${code}`, ...stackFrames(error)].join('\n');
}

/** Where a program wants to listen, and the name of the variable that says at which port. */
export interface ListenAddress {
  variable: string;
  port: number;
  host: string;
}

/** What an error of `listen` means to who has set the address, as `StartupError`; any other error as it is. */
export function explainListenError(error: unknown, { variable, port, host }: ListenAddress): unknown {
  const words = new Map([
    ['EADDRINUSE', `${variable}=${port}: something else listens there; stop it or set another port`],
    ['EACCES', `${variable}=${port}: only privileged users may listen there; set a port above 1023`],
    ['EADDRNOTAVAIL', `HOST=${host}: this machine has no such address`],
    ['ENOTFOUND', `HOST=${host}: this machine has no such address`],
  ]).get(error instanceof Error && 'code' in error ? String(error.code) : '');
  return words === undefined ? error : new StartupError(words, { cause: error });
}

/** What a program tells a parent that spawned it with an IPC channel: where it listens, then that it can serve. */
export type Announcement = { type: 'listening'; port: number } | { type: 'ready' };

/** Tells the parent process; does nothing for a program that was started without an IPC channel, or is left alone. */
export function notifyParent(announcement: Announcement): void {
  if (process.connected) process.send?.(announcement);
}
