import type { RequestHandler } from 'express';
import { RateLimiterMemory } from 'rate-limiter-flexible';
import { consume, counterOf } from './rate-counter.js';

/** Long enough for somebody who opens a few pages at once, and the longest that anybody is told to wait. */
const windowSeconds = 10;
const reads: ReadonlySet<string> = new Set(['GET', 'HEAD']);

/**
 * Bounds what one address may read without credentials: on average so many requests a second, counted over ten seconds in
 * this process; 0 means any number. Throws `rate_limited`.
 */
export function limitAnonymousReads({ perSecond }: { perSecond: number }): RequestHandler {
  if (perSecond === 0) return (_request, _response, next) => next();
  const rate = new RateLimiterMemory({ points: perSecond * windowSeconds, duration: windowSeconds });
  return async (request, _response, next) => {
    const isAnonymous = request.headers.authorization === undefined;
    if (isAnonymous && reads.has(request.method)) await consume(rate, counterOf(request.ip));
    next();
  };
}
