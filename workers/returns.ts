import type { Log } from '../shared/log.js';
import { HandedBack } from '../shared/queue-store.js';

/** What of BullMQ's job is needed to give it back to its queue. */
export interface ReturnableJob {
  id?: string | undefined;
  /** When it was added, in milliseconds since the epoch. */
  timestamp: number;
  moveToWait(token?: string): Promise<unknown>;
  moveToDelayed(timestamp: number, token?: string): Promise<unknown>;
}

/** How a pool gives jobs back; none counts as a start that was never finished. Both always throw `HandedBack`. */
export interface Returns {
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

export function createReturns(log: Log, now: () => number = Date.now): Returns {
  let isNoted = false;
  const afterwards = async (moving: Promise<unknown>, { id: jobId }: ReturnableJob): Promise<never> => {
    // Without the store the lock runs out, and then somebody takes the job over.
    await moving.catch((err) => log.debug({ err, jobId }, 'job not handed back'));
    throw new HandedBack();
  };
  return {
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
