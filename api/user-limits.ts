import { type RateLimiterAbstract, RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { Failure } from '../shared/failures.js';

/** How much one user, known by id, may ask of this process, whatever the others do. */
export interface UserLimits {
  /** Does the work for the user; throws `Failure('rate_limited')` when the user is over a limit. */
  run<T>(user: string, work: () => Promise<T>): Promise<T>;
  /** Counts something of the user's that goes on after its request as in flight until it has ended; never throws. */
  hold(user: string, ended: Promise<unknown>): void;
}

interface UserLimitOptions {
  /** Requests of a user at once; absent means any number. */
  mostInFlight?: number | undefined;
  /** Requests of a user within one window; absent means any number. */
  mostPerWindow?: number | undefined;
  /** A window begins with a request and lasts so long, in seconds. */
  windowSeconds?: number;
}

/** Nobody knows when one of the requests in flight ends; most end soon. */
const tryAgainMs = 1000;

/**
 * Limits that are counted in this process. A request that is refused because of those in flight counts as none: a client
 * that comes again every second uses up nothing.
 */
export function createUserLimits(options: UserLimitOptions): UserLimits {
  const { mostInFlight = Number.POSITIVE_INFINITY, mostPerWindow, windowSeconds = 60 } = options;
  const inFlight = new Map<string, number>();
  const rate =
    mostPerWindow === undefined
      ? undefined
      : new RateLimiterMemory({ points: mostPerWindow, duration: windowSeconds });

  const enter = (user: string) => inFlight.set(user, (inFlight.get(user) ?? 0) + 1);
  const leave = (user: string) => {
    const left = (inFlight.get(user) ?? 0) - 1;
    // Whoever asks for nothing takes up no memory.
    if (left > 0) inFlight.set(user, left);
    else inFlight.delete(user);
  };
  return {
    run: async (user, work) => {
      if ((inFlight.get(user) ?? 0) >= mostInFlight)
        throw new Failure('rate_limited', { retryAfterMs: tryAgainMs });
      enter(user);
      try {
        if (rate) await consume(rate, user);
        return await work();
      } finally {
        leave(user);
      }
    },
    hold: (user, ended) => {
      enter(user);
      void ended.catch(() => undefined).then(() => leave(user));
    },
  };
}

/** Counts one request under the key; throws `Failure('rate_limited')` when there are too many of them. */
export async function consume(rate: RateLimiterAbstract, key: string | number): Promise<void> {
  try {
    await rate.consume(key);
  } catch (refusal) {
    if (!(refusal instanceof RateLimiterRes)) throw refusal;
    throw new Failure('rate_limited', { retryAfterMs: Math.max(refusal.msBeforeNext, 1) });
  }
}
