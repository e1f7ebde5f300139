import { Failure } from '../../shared/failures.js';
import { callErrorOf } from '../providers/error-classification.js';
import { Cancelled, CutForFallback } from './ends.js';
import type { EndedCall, Fault, Shown } from './gated-call.js';
import { MovingMean } from './moving-mean.js';

/** A call that its caller ends shows something only after this many times the usual time. */
const minTimesUsual = 3;
/** The shortest wait that a caller can ask for is a second (`Prefer: wait=1`); this much of it is left for the call. */
const minCallMs = 900;

/**
 * Samples the calls of one model. Retryable errors are bad, and calls that got no answer in time, or that their callers
 * cut after an unusually long one, are silent. Rejected requests, our own aborts, rate limits, unusable answers, and
 * a model that works for too long must neither open a breaker nor close one.
 */
export class CallSamples {
  readonly #usualMs = new MovingMean();
  /** When the latest of the answered calls began. */
  #answeredSince = 0;

  /** Mean time of the answers, in milliseconds; undefined before the first. */
  get usualMs(): number | undefined {
    return this.#usualMs.value;
  }

  /** The evidence that this call gives; undefined if none. */
  take(call: EndedCall): Shown | undefined {
    const { error, tookMs } = call;
    if (isTimeout(error) || isEndedByCaller(error)) return this.#takeSilence(call);
    if (isProviderFault(error)) return { kind: 'bad', reason: error.code };
    if (callErrorOf(error)?.namesModel) return { kind: 'bad', reason: 'credentials' };
    if (error !== undefined && !isAnswer(error)) return undefined;
    this.#answeredSince = Math.max(this.#answeredSince, performance.now() - tookMs);
    if (error !== undefined) return { kind: 'answer' };
    this.#usualMs.record(tookMs);
    return { kind: 'good' };
  }

  /** A call shows little if it was cut before any was answered, or if later ones were answered: it may just be long. */
  #takeSilence(call: EndedCall): Fault | undefined {
    const { error, isAlive, isReplying, isProbe, tookMs } = call;
    const isCut = isEndedByCaller(error);
    if (isAlive && !isCut) return undefined;
    const { usualMs } = this;
    const isUnusual = !isReplying && tookMs >= minCallMs && tookMs > minTimesUsual * (usualMs ?? 0);
    // An impatient caller says nothing about the provider, and others wait for a probe.
    if (isCut && (isProbe || !isUnusual)) return undefined;
    const isLater = performance.now() - tookMs >= this.#answeredSince;
    const showsMuch = isProbe || (isLater && (!isCut || usualMs !== undefined));
    const reason = error instanceof Failure ? error.code : 'timeout';
    return { kind: showsMuch ? 'silent' : 'faint', reason };
  }
}

/** Whether the call ended before the provider had its full time: by its caller, its deadline, or for its fallback. */
const isEndedByCaller = (error: unknown): boolean =>
  error instanceof Cancelled ||
  (error instanceof Failure && (error.code === 'timeout' || error.cause instanceof CutForFallback));

/** Whether the provider had the full time of a call. */
const isTimeout = (error: unknown): boolean => error instanceof Failure && error.code === 'provider_timeout';

const isProviderFault = (error: unknown): error is Failure =>
  error instanceof Failure &&
  error.code === 'provider_error' &&
  error.retryable &&
  !callErrorOf(error)?.concernsAccount &&
  !callErrorOf(error)?.isUnusable;

/** Whether the provider answered, though not with a reply. */
const isAnswer = (error: unknown): boolean =>
  error instanceof Failure &&
  ['provider_rate_limited', 'provider_error', ...refusalCodes].includes(error.code);

const refusalCodes = ['provider_rejected', 'context_length_exceeded', 'content_blocked'];

/**
 * Samples calls for the health of the account: no connection, spent credit and refused credentials. Any other answer is
 * good, but for one about a model's credentials; no answer shows nothing.
 */
export class AccountSamples {
  take({ error }: Pick<EndedCall, 'error'>): Shown | undefined {
    const cause = callErrorOf(error);
    if (cause?.isUnreachable) return { kind: 'bad', reason: 'unreachable', isCertain: true };
    if (cause?.isOutOfCredit) return { kind: 'down', reason: 'credit', isCertain: true };
    if (cause?.seemsOutOfCredit) return { kind: 'bad', reason: 'credit' };
    if (cause?.concernsAccount) return { kind: 'bad', reason: 'credentials' };
    const isAnswered = error === undefined || cause?.status !== undefined;
    return isAnswered && !cause?.namesModel ? { kind: 'good' } : undefined;
  }
}
