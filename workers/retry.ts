import { setTimeout as delay } from 'node:timers/promises';
import { Failure } from '../shared/failures.js';
import type { RetryBudget } from './retry-budget.js';

interface RetryLimits {
  budget: RetryBudget;
  /** No attempt starts after it, in milliseconds since the epoch. */
  deadline: number;
  /** Ends the pause between the attempts. */
  signal: AbortSignal;
}

const shortestPauseMs = 100;
const longestPauseMs = 400;
/** Less time than this to the deadline is not worth another call. */
const leastTimeLeftMs = 250;

/**
 * The one retry layer: at most one more attempt, when the failure may pass, the pause (the provider's `Retry-After`,
 * else a jittered fraction of a second) fits before the deadline, and the budget allows it. A call that timed out is
 * not repeated: it has already cost the most a call can.
 */
export async function withOneRetry<T>(attempt: () => Promise<T>, limits: RetryLimits): Promise<T> {
  limits.budget.earn();
  try {
    return await attempt();
  } catch (error) {
    const pauseMs = pauseBeforeRetry(error);
    if (pauseMs === undefined || Date.now() + pauseMs + leastTimeLeftMs > limits.deadline) throw error;
    if (!limits.budget.spend()) throw error;
    await delay(pauseMs, undefined, { signal: limits.signal }).catch(() => limits.signal.throwIfAborted());
    return await attempt().catch((second) => {
      throw isRefused(second) ? error : second;
    });
  }
}

/** The first attempt may have opened the breaker: then what it met says more than that the second was not made. */
const isRefused = (error: unknown): boolean =>
  error instanceof Failure && error.code === 'provider_unavailable';

function pauseBeforeRetry(error: unknown): number | undefined {
  if (!(error instanceof Failure) || !error.retryable) return undefined;
  if (error.code !== 'provider_error' && error.code !== 'provider_rate_limited') return undefined;
  const jitteredMs = shortestPauseMs + Math.random() * (longestPauseMs - shortestPauseMs);
  return error.facts.retryAfterMs === undefined ? jitteredMs : error.facts.retryAfterMs + Math.random() * 100;
}
