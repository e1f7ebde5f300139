import { hash, randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { setTimeout as delayFor } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import { RateLimiterMemory } from 'rate-limiter-flexible';
import { Failure } from '../../shared/failures.js';
import { Tally } from '../../shared/runtime/tally.js';
import { clientOf, createCounters } from './rate-limit.js';

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
  readonly #maxFailures: number;
  readonly #intervalMs: number;
  readonly #delay: NonNullable<LimiterOptions['delay']>;
  readonly #failures: RateLimiterMemory;
  /** Digests of accepted logins. */
  readonly #accepted = new LRUCache<string, true>({ max: maxAccepted, ttl: acceptedForMs });
  readonly #salt = randomUUID();
  readonly #counterOf = createCounters();
  /** How many attempts wait, by address and by address with name. */
  readonly #waiting = new Tally();

  constructor(options: LimiterOptions = {}) {
    const { maxFailures = 30, windowSeconds = 60, intervalMs = 1000, delay = delayUnreferenced } = options;
    this.#maxFailures = maxFailures;
    this.#intervalMs = intervalMs;
    this.#delay = delay;
    this.#failures = new RateLimiterMemory({ points: maxFailures, duration: windowSeconds });
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
      failed !== null && failed.consumedPoints >= this.#maxFailures ? [failed.msBeforeNext] : [],
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
    if (ofAddress && ofAddress.consumedPoints > this.#maxFailures)
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
      await this.#delay(intervals * this.#intervalMs, left.signal);
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

const delayUnreferenced = (ms: number, signal: AbortSignal): Promise<void> =>
  delayFor(ms, undefined, { ref: false, signal });
