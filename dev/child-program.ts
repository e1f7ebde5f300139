import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, copyFileSync, openSync, renameSync, rmSync, statSync, truncateSync } from 'node:fs';
import { type ParentMessage, StartupError } from '../shared/runtime/program.js';
import { exitOf } from './process-exit.js';

/** A Quillgate program that runs as a child process and listens. */
export type ChildProgram = Awaited<ReturnType<typeof startChild>>;

interface ChildProgramOptions {
  name: string;
  command: string;
  args: string[];
  environment: NodeJS.ProcessEnv;
  /** Working directory; where a `.env` would be read from. */
  cwd?: string;
  logFile: string;
}

/** Starts a program and waits until it listens; rejects when it ends before. */
export async function startChild(options: ChildProgramOptions) {
  const child = spawnChild(options);
  return { ...child, port: await child.listening };
}

/**
 * Starts a program. Its IPC channel closes when this process ends, however that happens, and the program stops then.
 * A Ctrl-C in the terminal does not reach it, so that its parent can stop it in order.
 */
export function spawnChild({ name, command, args, environment, cwd, logFile }: ChildProgramOptions) {
  const log = openSync(logFile, 'a');
  const child = spawn(command, args, {
    env: environment,
    cwd,
    stdio: ['ignore', log, log, 'ipc'],
    detached: true,
  });
  closeSync(log);
  const ended = exitOf(child).then((exit) => `${name} ended unexpectedly (${exit}); its log is ${logFile}`);
  const failed = ended.then((reason) => Promise.reject(new StartupError(reason)));
  const listening = Promise.race([received(child, 'listening'), failed]).then(({ port }) => port);
  const ready = Promise.race([received(child, 'ready'), failed]).then(() => undefined);
  // Waiting for one is enough: `ended` reports the end, too.
  for (const step of [listening, ready]) step.catch(() => undefined);
  return {
    name,
    pid: child.pid ?? 0,
    /** Resolves with the port that it listens on; rejects when it ends before. */
    listening,
    /** Resolves when the program can serve; rejects when it ends before. */
    ready,
    /** Resolves with a message that has its exit and its log when the program ends, expected or not. */
    ended,
    /** Resolves with the exit code when the program ends, with null when a signal ended it. */
    exitCode: new Promise<number | null>((resolve) => child.once('exit', resolve)),
    /** Asks it to stop and waits until it has; kills it when that takes longer than `graceMs`. */
    stop: async ({ graceMs }: { graceMs: number }) => {
      child.kill('SIGTERM');
      const killing = setTimeout(() => child.kill('SIGKILL'), graceMs);
      await ended;
      clearTimeout(killing);
    },
  };
}

function received<T extends ParentMessage['type']>(child: ChildProcess, type: T) {
  return new Promise<Extract<ParentMessage, { type: T }>>((resolve) => {
    child.on('message', (message: Extract<ParentMessage, { type: T }>) => {
      if (message.type === type) resolve(message);
    });
  });
}

/** Maximum size of each log of `npm start`, and of each of two older files. */
const maxBytes = 10_000_000;
const everyMs = 5000;

/**
 * Rotates logs periodically. They are copied and then truncated, because the programs keep them open to append: a line
 * written in between is lost.
 */
export function rotateLogs(files: readonly string[]): { stop(): void } {
  const timer = setInterval(() => {
    for (const file of files) rotateLog(file, maxBytes);
  }, everyMs);
  timer.unref();
  return { stop: () => clearInterval(timer) };
}

/** Moves the content of a log to `<file>.1`, and that to `<file>.2`, when it is larger than this. */
export function rotateLog(file: string, limitBytes: number): void {
  const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  if (size <= limitBytes) return;
  try {
    rmSync(`${file}.2`, { force: true });
    if (statSync(`${file}.1`, { throwIfNoEntry: false })) renameSync(`${file}.1`, `${file}.2`);
    copyFileSync(file, `${file}.1`);
  } catch {
    // A full disk has no room for the copy; truncating the log makes room.
  }
  truncateSync(file);
}
