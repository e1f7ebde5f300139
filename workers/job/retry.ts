import { setTimeout as delay } from 'node:timers/promises';
import { Failure } from '../../shared/failures.js';
import type { Cooldown } from './cooldown.js';
import type { RetryBudget } from './retry-budget.js';
import type { Slot } from './slots.js';

interface RetryLimits {
  budget: RetryBudget;
  /** No attempt starts after it, in milliseconds since the epoch. */
  deadline: number;
  /** The clock of the deadline. */
  now?: () => number;
  /** Ends the pause between the attempts. */
  signal: AbortSignal;
  /** Not before it is over: the other calls of the model wait for it too. */
  cooldown: Pick<Cooldown, 'leftMs'>;
  /** Left for a pause that is long. */
  slot: Pick<Slot, 'leave'>;
}

const minPauseMs = 100;
const maxPauseMs = 400;
/** In a pause that is longer than this another job can have the slot. */
const longPauseMs = 500;
/** Less time than this to the deadline is not worth another call. */
const minTimeLeftMs = 250;

/**
 * The one retry layer: at most one more attempt, when the failure may pass, the pause (a jittered
 * fraction of a second, and no less than the provider's `Retry-After` or than the model is held back) fits before the deadline, and the budget
 * allows it. A call that timed out is not repeated: it has already cost the most a call can.
 */
export async function withOneRetry<T>(
  attempt: (kind: { isRetry: boolean }) => Promise<T>,
  limits: RetryLimits,
): Promise<T> {
  limits.budget.earn();
  try {
    return await attempt({ isRetry: false });
  } catch (error) {
    const ownPauseMs = pauseBeforeRetry(error);
    if (ownPauseMs === undefined) throw error;
    let pauseMs = Math.max(ownPauseMs, limits.cooldown.leftMs);
    if (!isInTime(pauseMs, limits) || !limits.budget.spend()) throw error;
    // Another call may make the cooldown longer meanwhile.
    for (; pauseMs > 0; pauseMs = limits.cooldown.leftMs) {
      if (!isInTime(pauseMs, limits)) throw error;
      if (pauseMs > longPauseMs) limits.slot.leave();
      await delay(pauseMs, undefined, { signal: limits.signal }).catch(() => limits.signal.throwIfAborted());
    }
    return await attempt({ isRetry: true }).catch((second) => {
      throw isRefused(second) ? error : second;
    });
  }
}

const isInTime = (pauseMs: number, { deadline, now = Date.now }: RetryLimits): boolean =>
  now() + pauseMs + minTimeLeftMs <= deadline;

/** The first attempt may have opened the breaker: then what it met says more than that the second was not made. */
const isRefused = (error: unknown): boolean =>
  error instanceof Failure && error.code === 'provider_unavailable';

function pauseBeforeRetry(error: unknown): number | undefined {
  if (!(error instanceof Failure) || !error.retryable) return undefined;
  if (error.code !== 'provider_error' && error.code !== 'provider_rate_limited') return undefined;
  const jitteredMs = minPauseMs + Math.random() * (maxPauseMs - minPauseMs);
  // A provider that says 0, or a date in the past, would otherwise be asked again at once, by all.
  return Math.max(jitteredMs, (error.facts.retryAfterMs ?? 0) + Math.random() * 100);
}
