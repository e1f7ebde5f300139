import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { type ChildProgram, startChild } from '../../dev/child-program.js';
import type { Lifecycle } from '../../shared/runtime/lifecycle.js';

/** What programs run in. */
export interface Place {
  /** Stops them when it closes. */
  readonly lifecycle: Lifecycle;
  /** For their logs and data, and their working directory. */
  readonly dir: string;
}

/** The root folder of the checkout that the benchmark itself belongs to. */
export const thisCheckout = fileURLToPath(new URL('../..', import.meta.url));

/** A new folder in a place. */
export function newPlace({ lifecycle, dir }: Place, name: string): Place {
  const own = join(dir, name);
  mkdirSync(own);
  return { lifecycle, dir: own };
}

/** By default `quillgate` of this checkout. */
type Program = Pick<Parameters<typeof startChild>[0], 'name' | 'args' | 'environment'> & {
  command?: string;
  checkout?: string | undefined;
};

const graceMs = 15_000;

/** What starts the programs of a checkout. */
export const launcherOf = (checkout: string): string => join(checkout, 'bin', 'quillgate');

/** Starts a program that tells its port to its parent, as ours do. */
export async function startProgram(program: Program, { lifecycle, dir }: Place): Promise<ChildProgram> {
  const { checkout = thisCheckout, command = launcherOf(checkout), name, ...rest } = program;
  lifecycle.stopping.throwIfAborted();
  const logFile = join(dir, `${name}.log`);
  const starting = startChild({ ...rest, name, command, cwd: dir, logFile });
  return lifecycle.opened(name, await withLog(starting, logFile), (child) => child.stop({ graceMs }));
}

/** Rejects when one of the programs ends although it was not asked to. */
export function failureOf(programs: readonly ChildProgram[], { dir }: Place): Promise<never> {
  const end = ({ name, ended }: ChildProgram) =>
    withLog(
      ended.then((reason) => Promise.reject(new Error(reason))),
      join(dir, `${name}.log`),
    );
  const failed = Promise.race(programs.map(end));
  failed.catch(() => undefined);
  return failed;
}

const lastWords = (words: string): string => `its last words:\n${words.slice(-1500).trim()}`;

/** The log goes with the temporary folder, so its end is put into the error. */
async function withLog<T>(work: Promise<T>, logFile: string): Promise<T> {
  try {
    return await work;
  } catch (cause) {
    throw new Error(`${(cause as Error).message}; ${lastWords(readFileSync(logFile, 'utf8'))}`, { cause });
  }
}

/** Runs a program to its end and gives what it wrote to its output. Throws with its last words when it fails. */
export async function runToEnd(
  [command = '', ...args]: readonly string[],
  { lifecycle, dir }: Place,
  environment: NodeJS.ProcessEnv = process.env,
): Promise<string> {
  lifecycle.stopping.throwIfAborted();
  // A group of its own: npm starts programs, and all of them have to end before their folder is removed.
  const child = spawn(command, args, { cwd: dir, env: environment, detached: true });
  child.stdin.end();
  const ended = once(child, 'close');
  ended.catch(() => undefined);
  lifecycle.opened(command, child, async ({ pid, exitCode, signalCode }) => {
    if (pid === undefined || exitCode !== null || signalCode !== null) return;
    process.kill(-pid, 'SIGTERM');
    await ended;
  });
  const [output, errors] = [child.stdout, child.stderr].map((stream) => text(stream));
  const [code] = await ended;
  if (code === 0) return (await output) ?? '';
  throw new Error(`${[command, ...args].join(' ')} failed; ${lastWords(`${await output}${await errors}`)}`);
}
