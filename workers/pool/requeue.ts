import { HandedBack } from '../../shared/queue/queue-store.js';
import type { Log } from '../../shared/runtime/log.js';

/** What of BullMQ's job is needed to give it back to its queue. */
export interface ReturnableJob {
  id?: string | undefined;
  /** When it was added, in milliseconds since the epoch. */
  timestamp: number;
  moveToWait(token?: string): Promise<unknown>;
  moveToDelayed(timestamp: number, token?: string): Promise<unknown>;
}

/** How a pool gives jobs back; none counts as a start that was never finished. What gives one back always throws `HandedBack`. */
export interface Requeue {
  /** Whether this pool has not been asked this of the job lately: one goes back for the same reason once. */
  isFirst(jobId: string): boolean;
  /** For any worker to take at once. */
  requeue(job: ReturnableJob, token: string | undefined): Promise<never>;
  /**
   * For a worker of a newer release, the only one that can read it, after a pause. The pauses grow with the age of the job:
   * it gets soon to where it belongs, and costs little where there is no such worker.
   */
  deferToNewerRelease(job: ReturnableJob, token: string | undefined): Promise<never>;
}

const minPauseMs = 200;
const maxPauseMs = 5000;

/** Ids that are remembered: a job that comes back does so soon. */
const maxRemembered = 1000;

export function createRequeue(log: Log, now: () => number = Date.now): Requeue {
  let isNoted = false;
  const requeued = new Set<string>();
  const afterwards = async (moving: Promise<unknown>, { id: jobId }: ReturnableJob): Promise<never> => {
    // Without the store the lock runs out, and then somebody takes the job over.
    await moving.catch((err) => log.debug({ err, jobId }, 'job not handed back'));
    throw new HandedBack();
  };
  return {
    isFirst: (jobId) => {
      if (requeued.has(jobId)) return false;
      requeued.add(jobId);
      for (const oldest of requeued) if (requeued.size > maxRemembered) requeued.delete(oldest);
      return true;
    },
    requeue: (job, token) => afterwards(job.moveToWait(token), job),
    deferToNewerRelease: (job, token) => {
      // There may be thousands.
      log[isNoted ? 'debug' : 'warn']({ jobId: job.id }, 'job of a newer release left to its workers');
      isNoted = true;
      const ageMs = now() - job.timestamp;
      // PostgreSQL takes no half of a millisecond.
      const pauseMs = Math.min(maxPauseMs, Math.max(minPauseMs, Math.round(ageMs / 2)));
      return afterwards(job.moveToDelayed(Date.now() + pauseMs, token), job);
    },
  };
}
