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

/** Puts jobs of a pool back into their queue, none of which counts as stalled for it, and throws `HandedBack`. */
export class Requeue {
  readonly #log: Log;
  readonly #now: () => number;
  #hasWarned = false;

  constructor(log: Log, now: () => number = Date.now) {
    this.#log = log;
    this.#now = now;
  }

  /** For any worker to take, at once or after a pause. */
  requeue(job: RequeuableJob, token: string | undefined, isDelayed = false): Promise<never> {
    return this.#handBack(job, isDelayed ? this.#delay(job, token) : job.moveToWait(token));
  }

  /** For a worker of a newer release. */
  deferToNewerRelease(job: RequeuableJob, token: string | undefined): Promise<never> {
    // There may be thousands: only the first is a warning.
    this.#log[this.#hasWarned ? 'debug' : 'warn'](
      { jobId: job.id },
      'job of a newer release left to its workers',
    );
    this.#hasWarned = true;
    return this.#handBack(job, this.#delay(job, token));
  }

  /** The pause grows with the job's age: there may be no worker that does better. */
  #delay(job: RequeuableJob, token: string | undefined): Promise<unknown> {
    const ageMs = this.#now() - job.timestamp;
    // PostgreSQL accepts whole milliseconds only.
    const pauseMs = Math.min(maxPauseMs, Math.max(minPauseMs, Math.round(ageMs / 2)));
    return job.moveToDelayed(Date.now() + pauseMs, token);
  }

  async #handBack({ id: jobId }: RequeuableJob, moving: Promise<unknown>): Promise<never> {
    // Without the store the job's lock expires, and another worker takes it over.
    await moving.catch((err) => this.#log.debug({ err, jobId }, 'job not requeued'));
    throw new HandedBack();
  }
}
