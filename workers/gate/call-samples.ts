import { Failure } from '../../shared/failures.js';
import { callErrorOf } from '../providers/error-classification.js';
import { Cancelled, CutForFallback } from './ends.js';
import type { EndedCall, Sample } from './gated-call.js';
import { MovingMean } from './moving-mean.js';
import type { UserBreaker } from './user-breaker.js';

/** A call that its caller ends shows something only after this many times the usual time. */
const minTimesUsual = 3;
/** The shortest wait that a caller can ask for is a second (`Prefer: wait=1`); this much of it is left for the call. */
const minCallMs = 900;
/** This many bad samples without a good one between them are enough, after any history. */
const maxBadInRow = 10;
/** This many calls that each show little are enough, if no call was answered in between. */
const maxUnansweredInRow = 10;

/**
 * Samples the calls of one model. Retryable errors are bad, and calls of several users that got no answer in time or
 * that their callers cut after an unusually long one; those of one user alone concern that user's breaker. Rejected
 * requests, our own aborts, rate limits, unusable answers and a wait for a schema to be compiled must neither open a
 * breaker nor close one.
 */
export class CallSamples {
  readonly #userBreaker: Pick<UserBreaker, 'record' | 'close'>;
  /** Mean time of the answers, in milliseconds. */
  readonly #usualMs = new MovingMean();
  /** Calls without an answer that show little, since the provider last answered. */
  #unansweredInRow = 0;
  #badInRow = 0;
  /** When the latest of the answered calls began. */
  #answeredSince = 0;

  constructor(userBreaker: Pick<UserBreaker, 'record' | 'close'>) {
    this.#userBreaker = userBreaker;
  }

  /** The sample of this call; undefined when it shows nothing. */
  take(call: EndedCall): Sample | undefined {
    const { error } = call;
    if (call.isCompiling && !call.isReplying && (isEndedByCaller(error) || isTimeout(error)))
      return undefined;
    if (isEndedByCaller(error)) return this.#isUnusual(call) ? this.#takeUnanswered(call) : undefined;
    if (isTimeout(error)) return this.#takeUnanswered(call);
    if (error === undefined) return this.#takeReply(call.tookMs);
    if (isProviderFault(error)) return this.#takeFault();
    if (isAnswer(error)) this.#recordAnswer(call.tookMs);
    return undefined;
  }

  /** The failure's code; `timeout` where callers left before the provider had begun. */
  reasonOf(error: unknown): string {
    return error instanceof Failure ? error.code : 'timeout';
  }

  #takeReply(tookMs: number): Sample {
    this.#recordAnswer(tookMs);
    this.#badInRow = 0;
    this.#usualMs.record(tookMs);
    return 'good';
  }

  #recordAnswer(tookMs: number): void {
    this.#unansweredInRow = 0;
    this.#answeredSince = Math.max(this.#answeredSince, performance.now() - tookMs);
    this.#userBreaker.close();
  }

  #takeFault(): Sample {
    this.#badInRow += 1;
    return this.#badInRow >= maxBadInRow ? 'down' : 'bad';
  }

  #isUnusual({ isReplying, tookMs }: EndedCall): boolean {
    return !isReplying && tookMs >= minCallMs && tookMs > minTimesUsual * (this.#usualMs.value ?? 0);
  }

  /** A call shows little if it was cut before any was answered, or if later ones were answered: it may just be long. */
  #takeUnanswered({ error, isProbe, isUsersProbe, user, tookMs }: EndedCall): Sample | undefined {
    const isCut = isEndedByCaller(error);
    // An impatient caller says nothing about the provider, and others wait for this probe.
    if (isProbe) return isCut ? undefined : 'bad';
    const isLater = performance.now() - tookMs >= this.#answeredSince;
    const showsMuch = isLater && (!isCut || this.#usualMs.value !== undefined);
    const isFailedProbe = isUsersProbe && !isCut;
    if (!this.#userBreaker.record({ user, weight: showsMuch ? 2 : 1, isFailedProbe })) return undefined;
    if (showsMuch) return this.#takeFault();
    this.#unansweredInRow += 1;
    return this.#unansweredInRow >= maxUnansweredInRow ? 'down' : undefined;
  }
}

/** Whether the call ended before the provider had its full time: by its caller, its deadline, or for its fallback. */
const isEndedByCaller = (error: unknown): boolean =>
  error instanceof Cancelled ||
  (error instanceof Failure && (error.code === 'timeout' || error.cause instanceof CutForFallback));

/** Whether the error concerns every model: refused credentials, or no connection. */
const concernsAccount = (error: unknown): boolean => callErrorOf(error)?.concernsAccount ?? false;

/** Whether nothing reached the provider. */
export const isUnreachable = (error: unknown): boolean => callErrorOf(error)?.isUnreachable ?? false;

/** Whether the provider had the full time of a call. */
const isTimeout = (error: unknown): boolean => error instanceof Failure && error.code === 'provider_timeout';

const isProviderFault = (error: unknown): boolean =>
  error instanceof Failure &&
  error.code === 'provider_error' &&
  error.retryable &&
  !concernsAccount(error) &&
  !callErrorOf(error)?.isUnusable;

/** Whether the provider answered, though not with a reply. */
const isAnswer = (error: unknown): boolean =>
  error instanceof Failure &&
  ['provider_rate_limited', 'provider_error', ...refusalCodes].includes(error.code);

const refusalCodes = ['provider_rejected', 'context_length_exceeded', 'content_blocked'];

/** Samples calls for refused credentials and failed connections. Any other answer is good, and none is no sample. */
export class AccountSamples {
  #badInRow = 0;

  take({ error }: Pick<EndedCall, 'error'>): Sample | undefined {
    if (concernsAccount(error)) {
      this.#badInRow += 1;
      return this.#badInRow >= maxBadInRow ? 'down' : 'bad';
    }
    if (error !== undefined && !hasStatus(error)) return undefined;
    this.#badInRow = 0;
    return 'good';
  }

  reasonOf(error: unknown): string {
    return isUnreachable(error) ? 'unreachable' : 'credentials';
  }
}

const hasStatus = (error: unknown): boolean => callErrorOf(error)?.status !== undefined;
