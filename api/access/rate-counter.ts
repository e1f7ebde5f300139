import { isIP } from 'node:net';
import { crc32 } from 'node:zlib';
import { type RateLimiterAbstract, RateLimiterRes } from 'rate-limiter-flexible';
import { Failure } from '../../shared/failures.js';

/** Counts one request under the key; throws `Failure('rate_limited')` when there are too many of them. */
export async function consume(rate: RateLimiterAbstract, key: string | number): Promise<void> {
  try {
    await rate.consume(key);
  } catch (refusal) {
    if (!(refusal instanceof RateLimiterRes)) throw refusal;
    throw new Failure('rate_limited', { retryAfterMs: Math.max(refusal.msBeforeNext, 1) });
  }
}

/**
 * A counter takes about 500 bytes until its window ends, and whoever has an IPv6 network has addresses without end:
 * a fixed number of counters holds at most 8 MB. Two clients that share one are both failing, so little is lost.
 */
export const counters = 16_384;

/** The number of the counter for an address. What is not one, as an odd proxy may send it, shares a counter. */
export const counterOf = (address: string | undefined): number => crc32(clientOf(address ?? '')) % counters;

/** An IPv4 address, also one written as IPv6, or the first 64 bits of an IPv6 address: one subscriber has all the rest. */
export function clientOf(address: string): string {
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

/** The eight groups of an IPv6 address. `URL` writes it in its one canonical form, without dots (RFC 5952, 4). */
function groupsOf(address: string): number[] {
  const [withoutZone = ''] = address.split('%');
  const canonical = new URL(`http://[${withoutZone}]`).hostname.slice(1, -1);
  const [head = [], tail = []] = canonical
    .split('::')
    .map((part) => (part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16))));
  return [...head, ...Array<number>(8 - head.length - tail.length).fill(0), ...tail];
}
