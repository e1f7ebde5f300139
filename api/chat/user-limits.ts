import { type RateLimiterAbstract, RateLimiterMemory } from 'rate-limiter-flexible';
import { Failure } from '../../shared/failures.js';
import { consume } from '../access/rate-limit.js';

/** What a request costs its user. */
export interface UserLoad {
  /** Id of the user. */
  readonly user: string;
  /** Bytes of the conversation, as UTF-8. */
  readonly bytes: number;
}

interface UserLimitOptions {
  /** Requests that a user may have in flight; undefined means any number. */
  maxInFlight?: () => number | undefined;
  /** Requests that a user may make in one window; undefined means any number. */
  maxPerWindow?: number | undefined;
  /** How long a window lasts, in seconds; it begins with a request. */
  windowSeconds?: number;
  /** Bytes that a user's conversations in flight may have; a single one may be larger. */
  maxBytes?: number;
  /** Bytes that all conversations in flight may have. */
  maxBytesInAll?: number;
}

interface LoadInFlight {
  inFlight: number;
  bytes: number;
}

/** When a request in flight ends is unknown; most end soon. */
const retryAfterMs = 1000;
const nothing: Readonly<LoadInFlight> = { inFlight: 0, bytes: 0 };

/**
 * Limits each user's requests to this process, which counts them alone. A request that is refused because of those in flight
 * does not count towards the rate: a client that tries again every second uses up nothing.
 */
export class UserLimits {
  readonly #options: UserLimitOptions;
  readonly #rate: RateLimiterAbstract | undefined;
  readonly #usage = new Map<string, LoadInFlight>();
  #bytesInAll = 0;

  constructor(options: UserLimitOptions) {
    this.#options = options;
    const { maxPerWindow, windowSeconds = 60 } = options;
    if (maxPerWindow !== undefined)
      this.#rate = new RateLimiterMemory({ points: maxPerWindow, duration: windowSeconds });
  }

  /**
   * Runs the work for the user. Throws `rate_limited` when the user is over a limit, `overloaded` when the conversations of all
   * users are.
   */
  async run<T>(load: UserLoad, work: () => Promise<T>): Promise<T> {
    this.#refuseIfOver(load);
    this.#enter(load);
    try {
      if (this.#rate) await consume(this.#rate, load.user);
      return await work();
    } finally {
      this.#leave(load);
    }
  }

  /** Counts a chat that goes on after its request as in flight until it has ended; never throws. */
  countUntil(load: UserLoad, ended: Promise<unknown>): void {
    this.#enter(load);
    void ended.catch(() => undefined).then(() => this.#leave(load));
  }

  #refuseIfOver({ user, bytes }: UserLoad): void {
    const { maxInFlight, maxBytes = Number.POSITIVE_INFINITY, maxBytesInAll } = this.#options;
    const usage = this.#usage.get(user) ?? nothing;
    const isOver = usage.inFlight >= (maxInFlight?.() ?? Number.POSITIVE_INFINITY);
    // One that alone is larger than the limit is let in: the size of a body has its own limit.
    const isTooLarge = usage.inFlight > 0 && usage.bytes + bytes > maxBytes;
    if (isOver || isTooLarge) throw new Failure('rate_limited', { retryAfterMs });
    if (this.#bytesInAll > 0 && this.#bytesInAll + bytes > (maxBytesInAll ?? Number.POSITIVE_INFINITY))
      throw new Failure('overloaded', { retryAfterMs });
  }

  #enter({ user, bytes }: UserLoad): void {
    const usage = this.#usage.get(user) ?? nothing;
    this.#usage.set(user, { inFlight: usage.inFlight + 1, bytes: usage.bytes + bytes });
    this.#bytesInAll += bytes;
  }

  #leave({ user, bytes }: UserLoad): void {
    const usage = this.#usage.get(user) ?? nothing;
    // A user without requests takes up no memory.
    if (usage.inFlight <= 1) this.#usage.delete(user);
    else this.#usage.set(user, { inFlight: usage.inFlight - 1, bytes: usage.bytes - bytes });
    this.#bytesInAll -= bytes;
  }
}
