import { type RateLimiterAbstract, RateLimiterMemory } from 'rate-limiter-flexible';
import { Failure } from '../../shared/failures.js';
import { consume } from '../access/rate-limit.js';

/** Who asks, and how much is asked. */
export interface UserLoad {
  /** Id of the user. */
  readonly user: string;
  /** Bytes of the conversation, as UTF-8. */
  readonly bytes: number;
}

interface UserLimitOptions {
  /** Requests of a user at once; undefined means any number. */
  maxInFlight?: () => number | undefined;
  /** Requests of a user within one window; undefined means any number. */
  maxPerWindow?: number | undefined;
  /** A window begins with a request and lasts so long, in seconds. */
  windowSeconds?: number;
  /** Bytes of a user's conversations at once; a single one may be larger. */
  maxBytes?: number;
  /** Bytes of everybody's conversations at once. */
  maxBytesInAll?: number;
}

interface Usage {
  inFlight: number;
  bytes: number;
}

/** Nobody knows when one of the requests in flight ends; most end soon. */
const tryAgainMs = 1000;
const nothing: Readonly<Usage> = { inFlight: 0, bytes: 0 };

/**
 * How much one user may ask of this process, whatever the others do; counted in this process. A request that is refused
 * because of those in flight counts as none: a client that comes again every second uses up nothing.
 */
export class UserLimits {
  readonly #options: UserLimitOptions;
  readonly #rate: RateLimiterAbstract | undefined;
  readonly #usage = new Map<string, Usage>();
  #bytesInAll = 0;

  constructor(options: UserLimitOptions) {
    this.#options = options;
    const { maxPerWindow, windowSeconds = 60 } = options;
    if (maxPerWindow !== undefined)
      this.#rate = new RateLimiterMemory({ points: maxPerWindow, duration: windowSeconds });
  }

  /**
   * Does the work for the user. Throws `rate_limited` when the user is over a limit, `overloaded` when all users together
   * have as many bytes here as there may be.
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

  /** Counts something of the user's that goes on after its request as in flight until it has ended; never throws. */
  hold(load: UserLoad, ended: Promise<unknown>): void {
    this.#enter(load);
    void ended.catch(() => undefined).then(() => this.#leave(load));
  }

  #refuseIfOver({ user, bytes }: UserLoad): void {
    const { maxInFlight, maxBytes = Number.POSITIVE_INFINITY, maxBytesInAll } = this.#options;
    const usage = this.#usage.get(user) ?? nothing;
    const isOver = usage.inFlight >= (maxInFlight?.() ?? Number.POSITIVE_INFINITY);
    // One that is larger than the limit is let in alone: the largest body is another limit.
    const isLarge = usage.inFlight > 0 && usage.bytes + bytes > maxBytes;
    if (isOver || isLarge) throw new Failure('rate_limited', { retryAfterMs: tryAgainMs });
    if (this.#bytesInAll > 0 && this.#bytesInAll + bytes > (maxBytesInAll ?? Number.POSITIVE_INFINITY))
      throw new Failure('overloaded', { retryAfterMs: tryAgainMs });
  }

  #enter({ user, bytes }: UserLoad): void {
    const usage = this.#usage.get(user) ?? nothing;
    this.#usage.set(user, { inFlight: usage.inFlight + 1, bytes: usage.bytes + bytes });
    this.#bytesInAll += bytes;
  }

  #leave({ user, bytes }: UserLoad): void {
    const usage = this.#usage.get(user) ?? nothing;
    // Whoever asks for nothing takes up no memory.
    if (usage.inFlight <= 1) this.#usage.delete(user);
    else this.#usage.set(user, { inFlight: usage.inFlight - 1, bytes: usage.bytes - bytes });
    this.#bytesInAll -= bytes;
  }
}
