import { constants } from 'node:os';
import manifest from '../../package.json' with { type: 'json' };
import { ConfigError, type Environment, readEnvironment } from '../config/config.js';
import { unknownVariables } from '../config/unknown-variables.js';
import { stackFrames } from './log.js';

/** Thrown by a program that cannot start; its message gives the reason and is safe to show. */
export class StartupError extends Error {
  override readonly name = 'StartupError';
}

/**
 * Runs one of our programs. When it cannot start, the reason goes to stderr and the exit code is 1: configuration
 * problems with their variables, other errors without their messages, because libraries put addresses and passwords
 * into those. Variables that look misspelt are named on stderr first.
 */
export async function runProgram(program: (environment: Environment) => Promise<void> | void): Promise<void> {
  if (process.pid === 1)
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, endUnlessAwaited);
  // A full disk or a closed reader must not end the program.
  process.stderr.on('error', () => undefined);
  try {
    const environment = readEnvironment();
    for (const warning of unknownVariables(environment)) process.stderr.write(`${warning}\n`);
    await program(environment);
  } catch (error) {
    process.stderr.write(`${describe(error)}\n`);
    process.exit(1);
  }
}

/** For the first process of a container, whose signals have no default action: `docker stop` would have to kill it. */
function endUnlessAwaited(signal: NodeJS.Signals): void {
  if (process.listenerCount(signal) === 1) process.exit(128 + constants.signals[signal]);
}

function describe(error: unknown): string {
  if (error instanceof ConfigError || error instanceof StartupError) return error.message;
  if (!(error instanceof Error)) return 'failed';
  const code = 'code' in error ? ` (${String(error.code)})` : '';
  return [`${error.name}${code}`, ...stackFrames(error)].join('\n');
}

/** An address to listen on, and the name of the variable that sets its port. */
export interface ListenAddress {
  variable: string;
  port: number;
  host: string;
}

/** Turns an error of `listen` that the configured address causes into a `StartupError`; returns others as they are. */
export function explainListenError(error: unknown, { variable, port, host }: ListenAddress): unknown {
  const words = new Map([
    ['EADDRINUSE', `${variable}=${port}: something else listens there; stop it or set another port`],
    ['EACCES', `${variable}=${port}: only privileged users may listen there; set a port above 1023`],
    ['EADDRNOTAVAIL', `HOST=${host}: this machine has no such address`],
    ['ENOTFOUND', `HOST=${host}: this machine has no such address`],
  ]).get(error instanceof Error && 'code' in error ? String(error.code) : '');
  return words === undefined ? error : new StartupError(words, { cause: error });
}

/** Messages to a parent that spawned the program with an IPC channel: where it listens, then that it can serve. */
export type ParentMessage = { type: 'listening'; port: number } | { type: 'ready' };

/** Sends a message to the parent process; does nothing without an IPC channel, or when that is closed. */
export function notifyParent(message: ParentMessage): void {
  if (process.connected) process.send?.(message);
}

/** The release of Quillgate; the version of the API, in the OpenAPI document, is a different one. */
export const release: string = manifest.version;
