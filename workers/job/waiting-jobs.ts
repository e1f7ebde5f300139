import type { Failure } from '../../shared/failures.js';
import type { BreakerState } from './breaker.js';
import type { Slot } from './slots.js';

/** A job that has made no call goes back to its queue with this: another worker may make the call. */
export class NotBegun extends Error {
  override readonly name = 'NotBegun';
}

/** A call that a job wants to make. */
export interface WantedCall {
  readonly kind: CallKind;
  /** When the caller stops waiting, in milliseconds since the epoch. */
  readonly deadline: number;
  /** How long it waits at most for a model that is limited, in milliseconds; absent means until the deadline. */
  readonly patienceMs?: number;
  readonly stop: AbortSignal;
  readonly slot: Slot;
  /** Id of the user who asks. */
  readonly user?: string | undefined;
}

export interface CallKind {
  readonly isRetry: boolean;
}

/** A job that waits; either function ends its wait. */
export interface Waiter {
  readonly call: WantedCall;
  begin(): void;
  reject(reason: unknown): void;
}

interface WaitLimit {
  readonly ms: number;
  readonly failure: () => Failure;
}

/** The jobs that wait for one model, in order. */
export class WaitingJobs {
  readonly #waiters = new Set<Waiter>();

  get all(): Waiter[] {
    return [...this.#waiters];
  }

  /** Resolves once the job may begin; rejects with why it may not, at its limit, or with the reason of its signal. */
  async wait(call: WantedCall, limit: WaitLimit): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter: Waiter = {
      call,
      begin: () => this.#waiters.delete(waiter) && resolve(),
      reject: (reason) => this.#waiters.delete(waiter) && reject(reason),
    };
    const onStop = () => waiter.reject(call.stop.reason);
    const timer = setTimeout(() => waiter.reject(limit.failure()), limit.ms);
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

/** A job with a `patienceMs` waits no longer than this for a probe, which may fail, in milliseconds. */
const probePatienceMs = 500;

/** How long the job waits at most, in milliseconds, while the breaker is in this state. */
export function patienceOf({ patienceMs }: WantedCall, breaker: BreakerState): number {
  if (patienceMs === undefined) return Number.POSITIVE_INFINITY;
  return breaker === 'closed' ? patienceMs : Math.min(patienceMs, probePatienceMs);
}
