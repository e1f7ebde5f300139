/*
 * Patch of bullmq 6.7.0: `processJob` of `Worker`.
 * Gives: correctness. A job is held from its fetch until BullMQ has done all that it does with it: an end that the
 * store refuses emits neither `completed` nor `failed`, and its lock must run out, so that another worker takes over.
 * Until: BullMQ emits one event when it begins with a job and one when it is done with it, however the job ended.
 */
import type { Job, Worker } from 'bullmq';

type ProcessJob = Worker['processJob'];

/**
 * Calls `around` in place of a worker's processing of each job that it has fetched. `process` is that processing. It
 * settles once BullMQ is done with the job, also if the store took no end, and gives the job that BullMQ runs next:
 * `around` returns that unchanged. Nothing may be awaited before `process` is called, else jobs start in another order
 * than they were fetched.
 */
export function aroundJobs(
  worker: Pick<Worker, 'processJob'>,
  around: (queued: Job, token: string, process: () => ReturnType<ProcessJob>) => ReturnType<ProcessJob>,
): void {
  const processJob = worker.processJob.bind(worker);
  worker.processJob = (queued, token, ...others) =>
    around(queued, token, () => processJob(queued, token, ...others));
}
