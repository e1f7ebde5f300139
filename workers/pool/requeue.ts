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
export interface Returns {
  /** Whether this pool has not been asked this of the job lately: one goes back for the same reason once. */
  isFirst(jobId: string): boolean;
  /** For any worker to take at once. */
  handBack(job: ReturnableJob, token: string | undefined): Promise<never>;
  /**
   * For a worker of a newer release, the only one that can read it, after a pause. The pauses grow with the age of the job:
   * it gets soon to where it belongs, and costs little where there is no such worker.
   */
  leaveToNewer(job: ReturnableJob, token: string | undefined): Promise<never>;
}

const shortestPauseMs = 200;
const longestPauseMs = 5000;

/** Ids that are remembered: a job that comes back does so soon. */
const maxRemembered = 1000;

export function createReturns(log: Log, now: () => number = Date.now): Returns {
  let isNoted = false;
  const returned = new Set<string>();
  const afterwards = async (moving: Promise<unknown>, { id: jobId }: ReturnableJob): Promise<never> => {
    // Without the store the lock runs out, and then somebody takes the job over.
    await moving.catch((err) => log.debug({ err, jobId }, 'job not handed back'));
    throw new HandedBack();
  };
  return {
    isFirst: (jobId) => {
      if (returned.has(jobId)) return false;
      returned.add(jobId);
      for (const oldest of returned) if (returned.size > maxRemembered) returned.delete(oldest);
      return true;
    },
    handBack: (job, token) => afterwards(job.moveToWait(token), job),
    leaveToNewer: (job, token) => {
      // There may be thousands.
      log[isNoted ? 'debug' : 'warn']({ jobId: job.id }, 'job of a newer release left to its workers');
      isNoted = true;
      const ageMs = now() - job.timestamp;
      // PostgreSQL takes no half of a millisecond.
      const pauseMs = Math.min(longestPauseMs, Math.max(shortestPauseMs, Math.round(ageMs / 2)));
      return afterwards(job.moveToDelayed(Date.now() + pauseMs, token), job);
    },
  };
}
