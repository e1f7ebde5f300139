import { Failure } from '../../shared/failures.js';
import { ProviderCallError } from '../providers/error-classification.js';
import { Cancelled } from './active-jobs.js';

/** What a call shows of the health of what it called; `down` means that nothing is answered, as the calls before it show as well. */
export type Sample = 'good' | 'bad' | 'down';

/** How a call ended. */
export interface EndedCall {
  /** What it threw, if it did. */
  readonly error?: unknown;
  /** Whether part of a reply had arrived by then. */
  readonly isReplying: boolean;
  readonly tookMs: number;
}

/** A call that its caller ends shows something only after this many times the usual time. */
const minTimesUsual = 3;
/** The shortest wait that a caller can ask for is a second (`Prefer: wait=1`); this much of it is left for the call. */
const minCallMs = 900;
/** This many bad samples without a good one between them are enough, whatever came before. */
const maxBadInRow = 10;
/** While the usual time is not known, this many ended calls without an answer in between are enough. */
const maxEndedInRow = 10;
/** The usual time follows the last few dozen calls. */
const weight = 1 / 20;

/**
 * Samples the calls of one model. Time-outs and retryable errors are bad, and so is a call without a reply that its caller
 * ended after an unusually long time: callers often wait less than the call's own time-out. Rejected requests, our
 * own aborts, rate limits and unusable answers are no samples: they must neither open a breaker nor close one.
 */
export class CallSamples {
  #usualMs: number | undefined;
  /** Calls that their callers ended since the provider last answered. */
  #endedInRow = 0;
  #badInRow = 0;

  /** The sample of this call; undefined when it shows nothing. */
  take(call: EndedCall): Sample | undefined {
    if (isEndedByCaller(call.error)) return this.#takeEndedByCaller(call);
    if (call.error === undefined) return this.#takeAnswer(call.tookMs);
    if (isProviderFault(call.error)) return this.#takeFault();
    if (isAnswer(call.error)) this.#endedInRow = 0;
    return undefined;
  }

  /** The failure's code; `timeout` where callers left before the provider had begun. */
  reasonOf(error: unknown): string {
    return error instanceof Failure ? error.code : 'timeout';
  }

  #takeAnswer(tookMs: number): Sample {
    this.#endedInRow = 0;
    this.#badInRow = 0;
    this.#usualMs = this.#usualMs === undefined ? tookMs : this.#usualMs + (tookMs - this.#usualMs) * weight;
    return 'good';
  }

  #takeFault(): Sample {
    this.#badInRow += 1;
    return this.#badInRow >= maxBadInRow ? 'down' : 'bad';
  }

  #takeEndedByCaller({ isReplying, tookMs }: EndedCall): Sample | undefined {
    if (isReplying || tookMs < minCallMs) return undefined;
    if (this.#usualMs !== undefined)
      return tookMs > minTimesUsual * this.#usualMs ? this.#takeFault() : undefined;
    this.#endedInRow += 1;
    return this.#endedInRow >= maxEndedInRow ? 'down' : undefined;
  }
}

/** Whether the caller ended the call: its deadline passed, or it cancelled. */
const isEndedByCaller = (error: unknown): boolean =>
  error instanceof Cancelled || (error instanceof Failure && error.code === 'timeout');

/** Whether the error concerns every model: refused credentials, or no connection. */
export const concernsAccount = (error: unknown): boolean => callErrorOf(error)?.concernsAccount ?? false;

/** Whether nothing reached the provider. */
export const isUnreachable = (error: unknown): boolean => callErrorOf(error)?.isUnreachable ?? false;

const callErrorOf = (error: unknown): ProviderCallError | undefined =>
  error instanceof Failure && error.cause instanceof ProviderCallError ? error.cause : undefined;

const isProviderFault = (error: unknown): boolean =>
  error instanceof Failure &&
  !concernsAccount(error) &&
  (error.code === 'provider_timeout' || (error.code === 'provider_error' && error.retryable));

/** Whether the provider answered, though not with a reply. */
const isAnswer = (error: unknown): boolean =>
  error instanceof Failure &&
  ['provider_rejected', 'provider_rate_limited', 'provider_error'].includes(error.code);

/**
 * Samples all calls of a provider for what concerns the account: refused credentials, and connections that cannot be made.
 * Any other answer is good; a call without an answer is no sample.
 */
export class AccountSamples {
  #badInRow = 0;

  take({ error }: EndedCall): Sample | undefined {
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
