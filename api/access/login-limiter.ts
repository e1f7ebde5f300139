import { hash, randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import { RateLimiterMemory } from 'rate-limiter-flexible';
import { Failure } from '../../shared/failures.js';
import { clientOf, counterOf, counters } from './rate-limit.js';

/** One attempt to log in. */
export interface Login {
  address: string | undefined;
  /** As they were sent. */
  credentials: string;
}

interface LimiterOptions {
  /** Failures within one window that are answered without delay. */
  maxFailures?: number;
  /** A window begins with a failure and lasts this long, in seconds. */
  windowSeconds?: number;
  /** Time between two attempts from an address with too many failures, in milliseconds. */
  intervalMs?: number;
}

/** Attempts that wait for admission: from one address, and in total. */
const maxWaitingPerAddress = 8;
const maxWaiting = 1000;
/** Accepted logins that are remembered, 150 bytes each. Forgetting one only means that it may have to wait. */
const maxAccepted = 10_000;
const acceptedForMs = 3_600_000;

/**
 * Slows down password guessing, by address and in this process: 30 failures a minute, then one attempt per second. It
 * locks nobody out: one bad client would then hurt everybody behind its address.
 */
export class LoginLimiter {
  readonly #maxFailures: number;
  readonly #intervalMs: number;
  readonly #failures: RateLimiterMemory;
  /** Digests of accepted logins, with a salt of this process. */
  readonly #accepted = new LRUCache<string, true>({ max: maxAccepted, ttl: acceptedForMs });
  readonly #salt = randomUUID();
  /** When the last waiting attempt will be admitted, by counter. */
  readonly #lastAdmissions = new Float64Array(counters);
  #waiting = 0;

  constructor({ maxFailures = 30, windowSeconds = 60, intervalMs = 1000 }: LimiterOptions = {}) {
    this.#maxFailures = maxFailures;
    this.#intervalMs = intervalMs;
    this.#failures = new RateLimiterMemory({ points: maxFailures, duration: windowSeconds });
  }

  /**
   * Call before the credentials are checked. From an address with too many failures it takes a second or more, so that
   * right credentials take as long as wrong ones; throws `Failure('rate_limited')` when too many attempts wait already.
   * Credentials that were accepted from the address within the hour pass at once.
   */
  async admit(login: Login): Promise<void> {
    if (this.#accepted.has(this.#digestOf(login))) return;
    const counter = counterOf(login.address);
    const failed = await this.#failures.get(counter);
    if (failed !== null && failed.consumedPoints >= this.#maxFailures)
      await this.#wait(counter, Math.max(failed.msBeforeNext, 1));
  }

  /** Records that the credentials were right. */
  recordSuccess(login: Login): void {
    this.#accepted.set(this.#digestOf(login), true);
  }

  /** Records a failed login; throws `Failure('rate_limited')` when the address had too many. */
  async recordFailure(login: Login): Promise<void> {
    this.#accepted.delete(this.#digestOf(login));
    const { consumedPoints, msBeforeNext } = await this.#failures.penalty(counterOf(login.address));
    if (consumedPoints > this.#maxFailures)
      throw new Failure('rate_limited', { retryAfterMs: Math.max(msBeforeNext, 1) });
  }

  async #wait(counter: number, retryAfterMs: number): Promise<void> {
    const now = performance.now();
    const at = Math.max(now, this.#lastAdmissions[counter] ?? 0) + this.#intervalMs;
    if (at - now > maxWaitingPerAddress * this.#intervalMs || this.#waiting >= maxWaiting)
      throw new Failure('rate_limited', { retryAfterMs });
    this.#lastAdmissions[counter] = at;
    this.#waiting += 1;
    await delay(at - now, undefined, { ref: false });
    this.#waiting -= 1;
  }

  #digestOf({ address = '', credentials }: Login): string {
    return hash('sha256', `${this.#salt}${clientOf(address)}\n${credentials}`, 'base64');
  }
}
