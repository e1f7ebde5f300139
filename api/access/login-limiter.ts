import { hash, randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { RateLimiterMemory } from 'rate-limiter-flexible';
import { Failure } from '../../shared/failures.js';
import { clientOf, counterOf, counters } from './rate-limit.js';

/** One attempt to log in. */
export interface Login {
  address: string | undefined;
  /** As they were sent. */
  credentials: string;
}

/** Slows those who guess, by where they come from. */
export interface LoginLimiter {
  /**
   * Comes before the credentials are looked at. From an address with too many failures it takes a second or more, so that right ones
   * take as long as wrong ones; throws `Failure('rate_limited')` when too many wait already. Credentials that were accepted from
   * the address within the hour pass at once.
   */
  admit(login: Login): Promise<void>;
  /** Notes that the credentials were right. */
  noteSuccess(login: Login): void;
  /** Notes a failed login; throws `Failure('rate_limited')` when there were too many from the address. */
  countFailure(login: Login): Promise<void>;
}

interface LimiterOptions {
  /** Failures within one window that are answered as such, and as fast as any. */
  most?: number;
  /** A window begins with a failure and lasts so long, in seconds. */
  windowSeconds?: number;
  /** Between two attempts that are looked at from an address with too many failures, in milliseconds. */
  paceMs?: number;
}

/** Attempts that wait for their turn: from one address, and in all. */
const maxWaitingPerAddress = 8;
const maxWaiting = 1000;

/**
 * A limiter for this process: 30 failures a minute from one client, then one attempt a second. No lock-out: that would let one bad
 * client hurt everybody behind its address.
 */
export function createLoginLimiter(options: LimiterOptions = {}): LoginLimiter {
  const { most = 30, windowSeconds = 60, paceMs = 1000 } = options;
  const failures = new RateLimiterMemory({ points: most, duration: windowSeconds });
  const accepted = createAcceptedLogins();
  /** When the last attempt that waits will be looked at, by counter. */
  const lastTurns = new Float64Array(counters);
  let waiting = 0;

  const turn = async (counter: number, retryAfterMs: number) => {
    const now = performance.now();
    const at = Math.max(now, lastTurns[counter] ?? 0) + paceMs;
    if (at - now > maxWaitingPerAddress * paceMs || waiting >= maxWaiting)
      throw new Failure('rate_limited', { retryAfterMs });
    lastTurns[counter] = at;
    waiting += 1;
    await delay(at - now, undefined, { ref: false });
    waiting -= 1;
  };
  return {
    admit: async (login) => {
      if (accepted.has(login)) return;
      const counter = counterOf(login.address);
      const failed = await failures.get(counter);
      if (failed !== null && failed.consumedPoints >= most)
        await turn(counter, Math.max(failed.msBeforeNext, 1));
    },
    noteSuccess: (login) => accepted.add(login),
    countFailure: async (login) => {
      accepted.remove(login);
      const { consumedPoints, msBeforeNext } = await failures.penalty(counterOf(login.address));
      if (consumedPoints > most)
        throw new Failure('rate_limited', { retryAfterMs: Math.max(msBeforeNext, 1) });
    },
  };
}

/** Pairs of an address and credentials; each takes about 150 bytes. Who has the oldest of more only loses a privilege. */
const maxAccepted = 10_000;
const acceptedForMs = 3_600_000;

/** Which credentials were right lately, and from where; kept as digests with a salt of this process. */
function createAcceptedLogins() {
  const salt = randomUUID();
  /** Until when, by digest, the oldest first. */
  const accepted = new Map<string, number>();
  const keyOf = ({ address = '', credentials }: Login) =>
    hash('sha256', `${salt}${clientOf(address)}\n${credentials}`, 'base64');
  return {
    has: (login: Login) => (accepted.get(keyOf(login)) ?? 0) > performance.now(),
    add: (login: Login) => {
      const key = keyOf(login);
      accepted.delete(key);
      accepted.set(key, performance.now() + acceptedForMs);
      const [oldest] = accepted.size > maxAccepted ? accepted.keys() : [];
      if (oldest !== undefined) accepted.delete(oldest);
    },
    remove: (login: Login) => accepted.delete(keyOf(login)),
  };
}
