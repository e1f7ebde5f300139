import { HandedBack } from '../../shared/queue/queue-store.js';
import type { Log } from '../../shared/runtime/log.js';
import type { QueuedJob } from '../job/running-job.js';

/** The part of BullMQ's job that is needed to put it back into its queue. */
export interface RequeuableJob extends QueuedJob {
  moveToWait(token?: string): Promise<unknown>;
  moveToDelayed(timestamp: number, token?: string): Promise<unknown>;
}

const minPauseMs = 200;
const maxPauseMs = 5000;

/** The pause of a job that other workers may not be able to do either, in milliseconds; it grows with the job's age. */
export const pauseFor = ({ timestamp }: QueuedJob, now: number): number =>
  // PostgreSQL accepts whole milliseconds only.
  Math.min(maxPauseMs, Math.max(minPauseMs, Math.round((now - timestamp) / 2)));

/** Puts a job back into its queue, for any worker to take after the pause. Throws `HandedBack`: it has not stalled. */
export async function handBack(
  job: RequeuableJob,
  token: string,
  { pauseMs, log }: { pauseMs?: number | undefined; log: Log },
): Promise<never> {
  const moving = pauseMs ? job.moveToDelayed(Date.now() + pauseMs, token) : job.moveToWait(token);
  // Without the store the job's lock expires, and another worker takes it over.
  await moving.catch((err) => log.debug({ err, jobId: job.id }, 'job not requeued'));
  throw new HandedBack();
}
