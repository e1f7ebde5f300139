import { Failure } from '../../shared/failures.js';
import { JsonThread } from '../../shared/json/json-thread.js';
import { Semaphore } from '../../shared/runtime/semaphore.js';

/** How many users' work is done at once. Each has a thread of the decoders, or waits for that of JSON. */
const usersAtOnce = 2;
const waitMs = 30_000;
const othersWait = () => new Failure('overloaded', { retryAfterMs: 1000 });
const ownWait = () =>
  new Failure('rate_limited', {
    detail: 'Too many large or compressed bodies of this user wait for each other.',
    retryAfterMs: 1000,
  });

/** A user's work, in the order in which it came. */
interface Line {
  readonly turns: Semaphore;
  /** How many pieces of work wait or are under way. */
  size: number;
}

/**
 * Does the work that takes longer than a small plain body: decoding, and large JSON texts in a thread. Each user's work
 * is done one piece at a time. Users take turns, because each of them waits in the common line at most once.
 */
export class LargeWork {
  readonly thread = new JsonThread();
  readonly #turns = new Semaphore(usersAtOnce);
  readonly #lines = new Map<string, Line>();

  /**
   * Works when it is the user's turn. Throws the reason of the signal if it aborts before that; after half a minute
   * `rate_limited` behind other work of this user, and `overloaded` behind that of others.
   */
  async run<T>(user: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const line = this.#lines.get(user) ?? { turns: new Semaphore(1), size: 0 };
    this.#lines.set(user, line);
    line.size += 1;
    const inTurn = () => this.#turns.run(work, { waitMs, timeoutError: othersWait, signal });
    try {
      return await line.turns.run(inTurn, { waitMs, timeoutError: ownWait, signal });
    } finally {
      line.size -= 1;
      if (line.size === 0) this.#lines.delete(user);
    }
  }
}
