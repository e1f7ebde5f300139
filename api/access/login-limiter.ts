import { hash, randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { isIP } from 'node:net';
import { setTimeout as delayFor } from 'node:timers/promises';
import type { RequestHandler } from 'express';
import { LRUCache } from 'lru-cache';
import { type RateLimiterAbstract, RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { Failure } from '../../shared/failures.js';
import { Tally } from '../../shared/runtime/semaphore.js';

/** One attempt to log in. */
export interface Login {
  address: string | undefined;
  /** The user's name; absent for credentials without one, such as access tokens. */
  name?: string | undefined;
  /** The parsed secret, so that another spelling of the same header is the same login. */
  secret: string;
  /** Where it is answered: once that has closed, the attempt waits no longer. */
  response?: Pick<ServerResponse, 'destroyed' | 'once' | 'off'> | undefined;
}

interface LimiterOptions {
  /** Failures within one window that are answered without delay. */
  maxFailures?: number;
  /** A window begins with a failure and lasts this long, in seconds. */
  windowSeconds?: number;
  /** Time between two attempts from an address, when it or the name had too many failures, in milliseconds. */
  intervalMs?: number;
  /** Waits for so many milliseconds, or rejects when the signal aborts; keeps no process alive. */
  delay?: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** The longest wait, in intervals: eight seconds. */
const maxWaitIntervals = 8;
/** Attempts that may wait from one address, with one name and in all. They bound guesses to 9 and 125 a second. */
const maxWaitingPerName = 64;
const maxWaitingPerAddress = 1000;
/** Accepted logins that are remembered, 150 bytes each. Forgetting one only means that it may have to wait. */
const maxAccepted = 10_000;
const acceptedForMs = 3_600_000;

/**
 * Slows down password guessing in this process: after 30 failures a minute from an address, or with a name, attempts
 * wait in turn, one second for each. No attempt waits for more than eight seconds, so right credentials are not locked
 * out; a flood from one address is therefore checked at up to 9 a second with one name, and 125 in all. Each name from
 * an address has waiting places of its own, so that guesses at other names leave room for it. A client that leaves
 * frees its places at once.
 */
export class LoginLimiter {
  readonly #options: Required<LimiterOptions>;
  readonly #failures: RateLimiterMemory;
  /** Digests of accepted logins. */
  readonly #accepted = new LRUCache<string, true>({ max: maxAccepted, ttl: acceptedForMs });
  readonly #salt = randomUUID();
  readonly #counterOf = createCounters();
  /** How many attempts wait, by address and by address with name. */
  readonly #waiting = new Tally();

  constructor(options: LimiterOptions = {}) {
    this.#options = { ...usualOptions, ...options };
    const { maxFailures: points, windowSeconds: duration } = this.#options;
    this.#failures = new RateLimiterMemory({ points, duration });
  }

  /**
   * Call before the credentials are checked. If the address or the name has too many failures, it takes one to eight
   * seconds, so that right credentials take as long as wrong ones; throws `Failure('rate_limited')` when too many
   * attempts wait already, or the client leaves. Credentials that were accepted from the address within the hour pass
   * at once.
   */
  async admit(login: Login): Promise<void> {
    if (this.#accepted.has(this.#digestOf(login))) return;
    const failures = await Promise.all(this.#countersOf(login).map((counter) => this.#failures.get(counter)));
    const waitsMs = failures.flatMap((failed) =>
      failed !== null && failed.consumedPoints >= this.#options.maxFailures ? [failed.msBeforeNext] : [],
    );
    if (waitsMs.length > 0) await this.#wait(login, Math.max(...waitsMs, 1));
  }

  recordSuccess(login: Login): void {
    this.#accepted.set(this.#digestOf(login), true);
  }

  /** Records a failed login; throws `Failure('rate_limited')` when the address had too many. */
  async recordFailure(login: Login): Promise<void> {
    this.#accepted.delete(this.#digestOf(login));
    const [ofAddress] = await Promise.all(
      this.#countersOf(login).map((counter) => this.#failures.penalty(counter)),
    );
    if (ofAddress && ofAddress.consumedPoints > this.#options.maxFailures)
      throw new Failure('rate_limited', { retryAfterMs: Math.max(ofAddress.msBeforeNext, 1) });
  }

  async #wait({ address, name, secret, response }: Login, retryAfterMs: number): Promise<void> {
    const client = clientOf(address);
    const named = this.#digest([client, name ?? secret]);
    const isFull =
      this.#waiting.of(client) >= maxWaitingPerAddress || this.#waiting.of(named) >= maxWaitingPerName;
    if (isFull || response?.destroyed) throw new Failure('rate_limited', { retryAfterMs });
    const left = new AbortController();
    const leave = () => left.abort(new Failure('rate_limited', { retryAfterMs }));
    response?.once('close', leave);
    for (const place of [client, named]) this.#waiting.add(place, 1);
    // One attempt is admitted each interval: with n others before it, this one comes after n + 1.
    const intervals = Math.min(this.#waiting.of(client), maxWaitIntervals);
    try {
      await this.#options.delay(intervals * this.#options.intervalMs, left.signal);
    } catch {
      throw left.signal.reason;
    } finally {
      response?.off('close', leave);
      for (const place of [client, named]) this.#waiting.add(place, -1);
    }
  }

  /** The counter of the address, then that of the name. */
  #countersOf({ address, name }: Login): string[] {
    const ofAddress = `address ${this.#counterOf(clientOf(address))}`;
    return name === undefined ? [ofAddress] : [ofAddress, `name ${this.#counterOf(name)}`];
  }

  #digestOf({ address, name = '', secret }: Login): string {
    return this.#digest([clientOf(address), name, secret]);
  }

  #digest(parts: readonly string[]): string {
    return hash('sha256', JSON.stringify([this.#salt, ...parts]), 'base64');
  }
}

const usualOptions: Required<LimiterOptions> = {
  maxFailures: 30,
  windowSeconds: 60,
  intervalMs: 1000,
  delay: (ms, signal) => delayFor(ms, undefined, { ref: false, signal }),
};

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
