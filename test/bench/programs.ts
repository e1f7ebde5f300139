import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type ChildProgram, startChild } from '../../dev/child-program.js';
import type { Lifecycle } from '../../shared/runtime/lifecycle.js';

/** Starts one of our programs; its arguments begin with the command. */
export type RunProgram = (
  name: string,
  args: string[],
  environment: NodeJS.ProcessEnv,
) => Promise<ChildProgram>;

/** The root folder of the checkout that the benchmark itself was built in. */
export const thisCheckout = fileURLToPath(new URL('../../..', import.meta.url));

const graceMs = 15_000;

/** What starts the programs of a checkout. */
export const launcherOf = (checkout: string): string => join(checkout, 'bin', 'quillgate');

/** Runs a checkout's programs with logs and working directory in `dir` until the lifecycle closes. */
export function programsIn(dir: string, lifecycle: Lifecycle, checkout = thisCheckout): RunProgram {
  return async (name, args, environment) => {
    lifecycle.stopping.throwIfAborted();
    const logFile = join(dir, `${name}.log`);
    const command = launcherOf(checkout);
    const starting = startChild({ name, command, args, environment, cwd: dir, logFile });
    return lifecycle.opened(name, await withLog(starting, logFile), (child) => child.stop({ graceMs }));
  };
}

/** Rejects when one of them ends although nobody asked it to. */
export function failureOf(children: readonly ChildProgram[], dir: string): Promise<never> {
  const failed = Promise.race(
    children.map(({ name, ended }) =>
      withLog(
        ended.then((reason) => Promise.reject(new Error(reason))),
        join(dir, `${name}.log`),
      ),
    ),
  );
  failed.catch(() => undefined);
  return failed;
}

const quotedLogBytes = 1500;

/** The log goes with the temporary directory, so its end is put into the error. */
async function withLog<T>(work: Promise<T>, logFile: string): Promise<T> {
  try {
    return await work;
  } catch (cause) {
    const end = readFileSync(logFile, 'utf8').slice(-quotedLogBytes).trim();
    throw new Error(`${(cause as Error).message}; its last words:\n${end}`, { cause });
  }
}
