import { countAll, countWaiting, type WaitingByLevel } from '../../shared/queue/priority.js';

interface BacklogOptions {
  queue: Parameters<typeof countWaiting>[0];
  /** A clock that never jumps, in milliseconds. */
  now?: () => number;
}

/** A worker that lost the connection on which it waits for jobs learns of it within six seconds: others may be told a little earlier. */
const trustedMs = 5000;
const nothing: WaitingByLevel = { waitedFor: [], async: [] };

/**
 * The jobs that wait for a pool. Who found none, and has room, is given the next one at once: until then it knows without
 * asking the store that none is waiting.
 */
export class Backlog {
  readonly #queue: BacklogOptions['queue'];
  readonly #now: () => number;
  #foundEmptyAt = Number.NEGATIVE_INFINITY;
  #forgottenAt = Number.NEGATIVE_INFINITY;

  constructor({ queue, now = () => performance.now() }: BacklogOptions) {
    this.#queue = queue;
    this.#now = now;
  }

  /** To be called when the pool has looked for a job and there was none. */
  recordEmpty(): void {
    this.#foundEmptyAt = this.#now();
  }

  /** To be called when the pool has taken a job, behind which others may wait, and when it was or will be paused. */
  forget(): void {
    this.#forgottenAt = this.#now();
  }

  /** Counts the waiting jobs, if that is not known; `hasRoom` says whether the pool would take one now. Rejects when the store cannot be asked. */
  async count({ hasRoom }: { hasRoom: boolean }): Promise<WaitingByLevel> {
    if (hasRoom && this.#isKnownEmpty()) return nothing;
    const askedAt = this.#now();
    const waiting = await countWaiting(this.#queue);
    const isEmpty = countAll(waiting.waitedFor) + countAll(waiting.async) === 0;
    if (hasRoom && isEmpty) this.#foundEmptyAt = askedAt;
    return waiting;
  }

  #isKnownEmpty(): boolean {
    return this.#foundEmptyAt > this.#forgottenAt && this.#now() - this.#foundEmptyAt < trustedMs;
  }
}
