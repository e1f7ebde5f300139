import { type RateLimiterAbstract, RateLimiterMemory } from 'rate-limiter-flexible';
import { Failure } from '../../shared/failures.js';
import { Tally } from '../../shared/runtime/tally.js';
import type { BytesInFlight } from '../access/bytes-in-flight.js';
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
  /** Counts the bytes of each request from their arrival. */
  bytesInFlight?: Pick<BytesInFlight, 'countUntil'>;
}

/** When a request in flight ends is unknown; most end soon. */
const retryAfterMs = 1000;

/**
 * Limits each user's requests to this process, which counts them alone. A request that is refused because of those in flight
 * does not count towards the rate: a client that tries again every second uses up nothing.
 */
export class UserLimits {
  readonly #options: UserLimitOptions;
  readonly #rate: RateLimiterAbstract | undefined;
  readonly #inFlight = new Tally();

  constructor(options: UserLimitOptions) {
    this.#options = options;
    const { maxPerWindow, windowSeconds = 60 } = options;
    if (maxPerWindow !== undefined)
      this.#rate = new RateLimiterMemory({ points: maxPerWindow, duration: windowSeconds });
  }

  /** Runs the work of a request for the user. Throws `rate_limited` when the user is over a limit. */
  run<T>({ user }: Pick<UserLoad, 'user'>, work: () => Promise<T>): Promise<T> {
    return this.runUncounted({ user }, async () => {
      if (this.#rate) await consume(this.#rate, user);
      return work();
    });
  }

  /** As `run`, for reading a stream again: it counts as in flight, but not towards the rate. */
  async runUncounted<T>({ user }: Pick<UserLoad, 'user'>, work: () => Promise<T>): Promise<T> {
    const maxInFlight = this.#options.maxInFlight?.() ?? Number.POSITIVE_INFINITY;
    if (this.#inFlight.of(user) >= maxInFlight) throw new Failure('rate_limited', { retryAfterMs });
    this.#inFlight.add(user, 1);
    try {
      return await work();
    } finally {
      this.#inFlight.add(user, -1);
    }
  }

  /** Counts a chat that goes on after its request as in flight until it has ended; never throws. */
  countUntil({ user, bytes }: UserLoad, ended: Promise<unknown>): void {
    this.#inFlight.addUntil(user, 1, ended);
    this.#options.bytesInFlight?.countUntil(user, bytes, ended);
  }
}
