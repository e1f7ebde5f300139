import { expect } from 'vitest';
import type { ChildProgram } from '../../../dev/child-program.js';
import { patienceMs } from '../../support/patience.js';
import type { Books } from './books.js';

/** Has workers with these variables run all jobs, one for each, until the deployment is restored. */
export async function replaceWorkers(
  { deployment }: Books,
  ...variables: Record<string, string>[]
): Promise<ChildProgram[]> {
  const before = [...deployment.workers];
  // The old ones go last: a pool is never absent.
  const started = await Promise.all(variables.map((own) => deployment.startWorker(own)));
  await Promise.all(before.map((worker) => worker.stop({ graceMs: patienceMs })));
  return started;
}

/** Asks a program to stop, and expects it to end in order. */
export async function terminate(program: ChildProgram | undefined): Promise<void> {
  if (program === undefined) throw new TypeError('no such program');
  process.kill(program.pid, 'SIGTERM');
  expect(await program.exitCode).toBe(0);
}
