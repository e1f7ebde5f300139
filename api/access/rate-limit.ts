import { hash, randomUUID } from 'node:crypto';
import { isIP } from 'node:net';
import type { RequestHandler } from 'express';
import { type RateLimiterAbstract, RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { Failure } from '../../shared/failures.js';

/** Long enough for a reader who opens several pages at once; also the longest wait that an answer names. */
const windowSeconds = 10;
const readMethods: ReadonlySet<string> = new Set(['GET', 'HEAD']);

/** Limits anonymous reads per address, averaged over ten seconds; 0 means no limit. Throws `rate_limited`. */
export function limitAnonymousReads({ perSecond }: { perSecond: number }): RequestHandler {
  if (perSecond === 0) return (_request, _response, next) => next();
  const rate = new RateLimiterMemory({ points: perSecond * windowSeconds, duration: windowSeconds });
  const counterOf = createCounters();
  return async (request, _response, next) => {
    const isAnonymous = request.headers.authorization === undefined;
    if (isAnonymous && readMethods.has(request.method)) await consume(rate, counterOf(clientOf(request.ip)));
    next();
  };
}

/** Counts one request under the key; throws `Failure('rate_limited')` when there are too many. */
export async function consume(rate: RateLimiterAbstract, key: string | number): Promise<void> {
  try {
    await rate.consume(key);
  } catch (refusal) {
    if (!(refusal instanceof RateLimiterRes)) throw refusal;
    throw new Failure('rate_limited', { retryAfterMs: Math.max(refusal.msBeforeNext, 1) });
  }
}

/**
 * A counter takes about 500 bytes until its window ends, and an IPv6 network has practically endless addresses: a fixed
 * number of counters takes at most 8 MB. Clients that share one are all failing, so little is lost.
 */
const counters = 16_384;

/** Numbers the counters of texts. A salt keeps clients from choosing texts that share a counter with another's. */
export function createCounters(): (text: string) => number {
  const salt = randomUUID();
  return (text) => hash('sha256', salt + text, 'buffer').readUInt32LE() % counters;
}

/**
 * An IPv4 address, also one written as IPv6, or the first 64 bits of an IPv6 address: one subscriber owns all addresses
 * below them. Texts that are no address, as an odd proxy may send them, count as one client.
 */
export function clientOf(address = ''): string {
  const version = isIP(address);
  if (version === 4) return address;
  if (version !== 6) return '';
  const groups = groupsOf(address);
  const [high = 0, low = 0] = groups.slice(6);
  const isMapped = groups.slice(0, 6).join() === '0,0,0,0,0,65535';
  if (isMapped) return [high >> 8, high & 255, low >> 8, low & 255].join('.');
  return groups
    .slice(0, 4)
    .map((group) => group.toString(16))
    .join(':');
}

/** The eight groups of an IPv6 address. `URL` gives the canonical form, without dots (RFC 5952, 4). */
function groupsOf(address: string): number[] {
  const [withoutZone = ''] = address.split('%');
  const canonical = new URL(`http://[${withoutZone}]`).hostname.slice(1, -1);
  const [head = [], tail = []] = canonical
    .split('::')
    .map((part) => (part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16))));
  return [...head, ...Array<number>(8 - head.length - tail.length).fill(0), ...tail];
}
