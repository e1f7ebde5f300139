import { Failure } from '../../shared/failures.js';
import { callErrorOf, refusesCredentials } from '../providers/errors/error-classification.js';
import type { Ending } from './breaker.js';
import type { CallEnd, Rule } from './breakers.js';
import { Cancelled, CutForFallback } from './gated-call.js';

interface Times {
  /** The longest call there can be, in milliseconds. */
  readonly timeoutMs: number;
  /** The pause between a breaker's opening and its probe, in milliseconds. */
  readonly resetMs: number;
}

/** A call that its caller ends shows something only after this many times the usual time. */
const minTimesUsual = 3;
/** The shortest wait that a caller can ask for is a second (`Prefer: wait=1`); this much of it is left for the call. */
const minCallMs = 900;
/** A breaker that spent credit has opened probes after this many reset times: paying takes minutes at best. */
const creditPauses = 30;

/** At 0.3 requests/s five calls take 17 s. */
const minWindowMs = 30_000;
const countingOf = (times: () => Times) => ({
  windowMs: () => Math.max(2 * times().timeoutMs, minWindowMs),
  maxInRow: 10,
  pauseMs: () => times().resetMs,
});

/** The failures of a model. */
export function failuresRule(times: () => Times): Rule {
  const usualMs = new MovingMean();
  /** When the latest of the answered calls began. */
  let answeredSince = 0;
  /** Whether it gave no sign of life in its full time, or in one that is long for its model. */
  const isSilent = ({ error, progress, tookMs }: CallEnd): boolean => {
    if (progress.isAlive || isTimeout(error)) return !progress.isAlive;
    const isLong = tookMs >= minCallMs && tookMs > minTimesUsual * (usualMs.value ?? 0);
    return isLong && performance.now() - tookMs >= answeredSince;
  };
  const judge = (call: CallEnd): Ending => {
    const { error, tookMs } = call;
    const reason = reasonOf(error);
    // A pause longer than the account's, so that another model's call asks whether the account is well again.
    const pauseMs = (creditPauses + 1) * times().resetMs;
    if (reason === 'credit') return { isBad: true, reason, isCertain: true, pauseMs };
    if (reason !== undefined) return { isBad: true, reason };
    if (isTimeout(error) || isEndedByCaller(error)) return isSilent(call) ? bad(codeOf(error)) : {};
    if (error !== undefined && !isRefusal(error)) return {};
    answeredSince = Math.max(answeredSince, performance.now() - tookMs);
    if (error === undefined) usualMs.record(tookMs);
    return { isBad: false };
  };
  const silence = { afterMs: () => times().resetMs, isBad: true };
  return { kind: 'failures', weighsAll: true, ...countingOf(times), judge, silence };
}

/** Counts failures of the account, which no model's call escapes. A silent probe has reached the provider. */
export function accountRule(times: () => Times): Rule {
  const judge = ({ error }: CallEnd): Ending => {
    const cause = callErrorOf(error);
    if (cause?.isUnreachable) return bad('unreachable', { isCertain: true });
    if (cause?.isOutOfCredit) return bad('credit', { pauseMs: creditPauses * times().resetMs });
    if (cause?.seemsOutOfCredit) return bad('credit');
    if (cause?.concernsAccount) return bad('credentials');
    const isAnswered = error === undefined || cause?.status !== undefined;
    return isAnswered && !cause?.namesModel ? { isBad: false } : {};
  };
  const silence = { afterMs: () => times().resetMs, isBad: false };
  return { kind: 'account', weighsAll: false, ...countingOf(times), judge, silence };
}

const minHoldMs = 250;
const maxHoldMs = 8000;
/** The longest hold, even for a longer `Retry-After`: quotas are raised, and clocks and headers are wrong. */
const maxAskedMs = 60_000;
/** The longest one when the quota of a day is spent. */
export const maxAskedOfDayMs = 300_000;
/** A call that is not refused within so long is not limited. */
export const unlimitedAfterMs = 1000;

/** A model's rate limits: one 429 is enough. */
export function limitsRule(times: () => Times): Rule {
  const judge = ({ error }: CallEnd): Ending => {
    if (!(error instanceof Failure) || error.code !== 'provider_rate_limited') return { isBad: false };
    const maxMs = error.retryable ? maxAskedMs : maxAskedOfDayMs;
    return bad(error.code, { pauseMs: Math.min(error.facts.retryAfterMs ?? 0, maxMs) });
  };
  const pauseMs = (opens: number) => Math.min(minHoldMs * 2 ** (opens - 1), maxHoldMs);
  const silence = { afterMs: () => unlimitedAfterMs, isBad: false };
  return { kind: 'limits', weighsAll: false, ...countingOf(times), pauseMs, judge, silence };
}

const bad = (reason: string, own: Ending = {}): Ending => ({ isBad: true, reason, ...own });

const codeOf = (error: unknown): string => (error instanceof Failure ? error.code : 'timeout');

/** Whether the call ended before the provider had its full time: by its caller, its deadline, or for its fallback. */
const isEndedByCaller = (error: unknown): boolean =>
  error instanceof Cancelled ||
  (error instanceof Failure && (error.code === 'timeout' || error.cause instanceof CutForFallback));

const isTimeout = (error: unknown): boolean =>
  error instanceof Failure && error.code === 'provider_timeout' && !(error.cause instanceof CutForFallback);

/** Why an answer of the provider is a failure of its model; undefined if it is none. */
function reasonOf(error: unknown): 'credit' | 'credentials' | 'provider_error' | undefined {
  const cause = callErrorOf(error);
  if (cause?.isOutOfCredit) return 'credit';
  if (cause?.namesModel) return 'credentials';
  const mayPass = error instanceof Failure && error.code === 'provider_error' && error.retryable;
  return mayPass && !cause?.concernsAccount && !cause?.isUnusable ? 'provider_error' : undefined;
}

/** Whether the provider answered, though not with a reply. */
const isRefusal = (error: unknown): boolean =>
  error instanceof Failure &&
  !refusesCredentials(error) &&
  (refusals.has(error.code) || callErrorOf(error)?.isUnusable === true);

const refusals: ReadonlySet<string> = new Set([
  'provider_rate_limited',
  'provider_rejected',
  'context_length_exceeded',
  'content_blocked',
]);

/** It follows the last few dozen values. */
const weight = 1 / 20;

/** A moving mean; undefined before the first value. */
export class MovingMean {
  #value: number | undefined;

  get value(): number | undefined {
    return this.#value;
  }

  record(next: number): void {
    const mean = this.#value;
    this.#value = mean === undefined ? next : mean + (next - mean) * weight;
  }
}
