import type { Failure } from '../../shared/failures.js';
import type { BreakerState } from './breaker.js';
import { NotBegun } from './ends.js';
import type { GatedCall } from './gated-call.js';

/** A job that waits; either function ends its wait. */
export interface Waiter {
  readonly call: GatedCall;
  begin(): void;
  reject(reason: unknown): void;
}

/** The jobs that wait for one model, in order. */
export class WaitingJobs {
  readonly #waiters = new Set<Waiter>();

  get all(): Waiter[] {
    return [...this.#waiters];
  }

  /** Has the jobs go back to their queue, except for retries: their first calls were made here. */
  sendBack(): void {
    for (const { call, reject } of this.all) if (call.kind === 'first') reject(new NotBegun());
  }

  /** Resolves once the job may begin; rejects with why it may not, after `maxMs`, or with the reason of its signal. */
  async wait(call: GatedCall, maxMs: number, failure: () => Failure): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter: Waiter = {
      call,
      begin: () => this.#waiters.delete(waiter) && resolve(),
      reject: (reason) => this.#waiters.delete(waiter) && reject(reason),
    };
    const onStop = () => waiter.reject(call.stop.reason);
    const timer = setTimeout(() => waiter.reject(failure()), maxMs);
    this.#waiters.add(waiter);
    call.stop.addEventListener('abort', onStop);
    if (call.stop.aborted) onStop();
    try {
      await promise;
    } finally {
      clearTimeout(timer);
      call.stop.removeEventListener('abort', onStop);
    }
  }
}

/** Jobs that may wait in a pool without a slot; each has its conversation in memory. */
const maxParked = 500;
/** So many more may wait of users with fewer than this there: the jobs of one user must not take all the room. */
const maxParkedMore = 50;
const fewParked = 5;

/** Whether one more job of this user may wait beside the parked jobs of these users. */
export const hasRoomFor = (user: string | undefined, parked: readonly (string | undefined)[]): boolean =>
  parked.length < maxParked ||
  (parked.length < maxParked + maxParkedMore && parked.filter((other) => other === user).length < fewParked);

const maxPatienceMs = 3000;

/** How long a job with a fallback waits for a limited model, in milliseconds; a third of its time is for the next. */
export const patienceFor = (leftMs: number): number => Math.min(maxPatienceMs, (leftMs * 2) / 3);

/** The same without a fallback: a client that would wait for minutes is better answered with a `Retry-After`. */
export const longestPatienceMs = 60_000;

/** The longest wait for a probe, in milliseconds, of a call that has a fallback: the probe may fail. */
const probePatienceMs = 500;

/** How long the job waits at most, in milliseconds, while the breaker is in this state. */
export const patienceOf = ({ patienceMs, hasFallback }: GatedCall, breaker: BreakerState): number =>
  breaker === 'closed' || !hasFallback ? patienceMs : Math.min(patienceMs, probePatienceMs);
