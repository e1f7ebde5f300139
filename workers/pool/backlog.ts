import type { Queue } from 'bullmq';
import { countAllWaiting, countWaiting, type WaitingByLevel } from '../../shared/queue/priority.js';

interface BacklogOptions {
  queue: Pick<
    Queue,
    'getCountsPerPriority' | 'getRateLimitTtl' | 'getGlobalRateLimit' | 'removeRateLimitKey'
  >;
  /** A monotonic clock, in milliseconds. */
  now?: () => number;
}

/** An empty queue is counted again after this long: a lost connection is noticed only within six seconds. */
const trustedMs = 5000;
const nothing: WaitingByLevel = { waitedFor: [], async: [] };

/** Counts a pool's waiting jobs. A pool that found none, and has room, gets the next one: it need not ask again. */
export class Backlog {
  readonly #queue: BacklogOptions['queue'];
  readonly #now: () => number;
  #foundEmptyAt = Number.NEGATIVE_INFINITY;
  #forgottenAt = Number.NEGATIVE_INFINITY;

  constructor({ queue, now = () => performance.now() }: BacklogOptions) {
    this.#queue = queue;
    this.#now = now;
  }

  /** To be called when the pool has found the queue empty. */
  recordEmpty(): void {
    this.#foundEmptyAt = this.#now();
  }

  /** To be called when the pool has taken a job, behind which others may wait, and when it may be paused or resumed. */
  forget(): void {
    this.#forgottenAt = this.#now();
  }

  /** The waiting jobs by level; `hasRoom` says whether the pool would take one now. Rejects without the store. */
  async count({ hasRoom }: { hasRoom: boolean }): Promise<WaitingByLevel> {
    const askedAt = this.#now();
    const isKnownEmpty = this.#foundEmptyAt > this.#forgottenAt && askedAt - this.#foundEmptyAt < trustedMs;
    if (hasRoom && isKnownEmpty) return nothing;
    const waiting = await countWaiting(this.#queue);
    if (hasRoom && countAllWaiting(waiting) === 0) this.#foundEmptyAt = askedAt;
    return waiting;
  }

  /**
   * Time until the rate lets another job begin, in milliseconds; 0 if one may. Rejects if the store is unavailable.
   * Ends a window that is longer than the rate says: a worker that had not heard of a change opened it by the old rate.
   */
  async rateLeftMs({ max, durationMs }: { max: number; durationMs: number }): Promise<number> {
    const leftMs = Math.max(0, await this.#queue.getRateLimitTtl(max));
    if (leftMs <= durationMs) return leftMs;
    // This worker may be the one that has not heard.
    const newest = await this.#queue.getGlobalRateLimit();
    if (newest !== null && leftMs <= newest.duration) return leftMs;
    await this.#queue.removeRateLimitKey();
    return 0;
  }
}
