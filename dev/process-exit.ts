import type { ChildProcess } from 'node:child_process';

/** Resolves with the signal or the exit code that ended the process. */
export const exitOf = (child: ChildProcess): Promise<string> =>
  new Promise((resolve) => {
    child.once('exit', (code, signal) => resolve(signal ?? `exit code ${code}`));
    child.once('error', () => resolve('not started'));
  });
