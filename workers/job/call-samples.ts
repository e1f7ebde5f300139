import { Failure } from '../../shared/failures.js';
import { ProviderCallError } from '../providers/error-classification.js';
import { Cancelled } from './active-jobs.js';

/** What a call shows of the health of what it called; `down`, with those before it, that it answers nobody. */
export type Sample = 'good' | 'bad' | 'down';

/** How a call ended. */
export interface EndedCall {
  /** What it threw, if it did. */
  readonly error?: unknown;
  /** Whether anything of a reply had come by then. */
  readonly isReplying: boolean;
  readonly tookMs: number;
}

/** A caller who gives up before this many times the usual time says nothing of the provider. */
const unusual = 3;
/** Whoever waits at all waits a second (`Prefer: wait=1`); this is what of it is left for the call. */
const minSilenceMs = 900;
/** This many bad samples with no good one between them are enough, whatever was before. */
const maxBadInRow = 10;
/** This many cut calls in a row count while the usual time is not known. */
const maxSilent = 10;
/** The usual time follows the last few dozen calls. */
const weight = 1 / 20;

/**
 * Samples the calls of one model. Time-outs and retryable errors are bad, and so is the silence of a call whose caller
 * gave up, when it was unusually long: callers are often less patient than the call's own time-out. Refused requests, our
 * own cancels, rate limits and unusable answers are no samples at all: they must neither open a breaker nor close one.
 */
export class CallSamples {
  #usualMs: number | undefined;
  /** Calls that were cut in silence since the provider last answered anything. */
  #silent = 0;
  #badInRow = 0;

  /** What this call shows; undefined when it shows nothing. */
  take(call: EndedCall): Sample | undefined {
    if (isCut(call.error)) return this.#takeSilence(call);
    if (call.error === undefined) return this.#takeAnswer(call.tookMs);
    if (showsFault(call.error)) return this.#takeFault();
    if (isAnswer(call.error)) this.#silent = 0;
    return undefined;
  }

  #takeAnswer(tookMs: number): Sample {
    this.#silent = 0;
    this.#badInRow = 0;
    this.#usualMs = this.#usualMs === undefined ? tookMs : this.#usualMs + (tookMs - this.#usualMs) * weight;
    return 'good';
  }

  #takeFault(): Sample {
    this.#badInRow += 1;
    return this.#badInRow >= maxBadInRow ? 'down' : 'bad';
  }

  #takeSilence({ isReplying, tookMs }: EndedCall): Sample | undefined {
    if (isReplying || tookMs < minSilenceMs) return undefined;
    if (this.#usualMs !== undefined) return tookMs > unusual * this.#usualMs ? this.#takeFault() : undefined;
    this.#silent += 1;
    return this.#silent >= maxSilent ? 'down' : undefined;
  }
}

/** Whether the caller ended the call: its deadline passed, or it has gone. */
const isCut = (error: unknown): boolean =>
  error instanceof Cancelled || (error instanceof Failure && error.code === 'timeout');

/** Whether the provider, or the way to it, is to blame, whatever model was asked. */
export const concernsAccount = (error: unknown): boolean => callErrorOf(error)?.concernsAccount ?? false;

/** Whether nothing has reached the provider. */
export const isUnreachable = (error: unknown): boolean => callErrorOf(error)?.isUnreachable ?? false;

const callErrorOf = (error: unknown): ProviderCallError | undefined =>
  error instanceof Failure && error.cause instanceof ProviderCallError ? error.cause : undefined;

const showsFault = (error: unknown): boolean =>
  error instanceof Failure &&
  !concernsAccount(error) &&
  (error.code === 'provider_timeout' || (error.code === 'provider_error' && error.retryable));

/** Whether the provider has answered, though not with what it was asked for. */
const isAnswer = (error: unknown): boolean =>
  error instanceof Failure &&
  ['provider_rejected', 'provider_rate_limited', 'provider_error'].includes(error.code);

/**
 * Samples all calls of a provider for what concerns the account: refused credentials, and connections that do not come
 * about. Any answer but those is a good sign; silence is none.
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
}

const hasStatus = (error: unknown): boolean => callErrorOf(error)?.status !== undefined;
