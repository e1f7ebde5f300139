import { Failure, type FailureCode } from '../../shared/failures.js';
import type { Call } from './call.js';
import { CutForFallback } from './call-samples.js';

export interface CallLimits {
  /** Longest call, or of a stream the longest wait for its first delta, in milliseconds. */
  timeoutMs: number;
  /** When the caller stops waiting, in milliseconds since the epoch. */
  deadline: number;
  now?: (() => number) | undefined;
  stop: AbortSignal;
  /** Of a call whose reply is read as it is written. */
  stream?: StreamLimits | undefined;
}

export interface StreamLimits {
  /** When the first delta has to be there, in milliseconds since the epoch. */
  firstDeltaBy: number;
  /** Longest wait for the first delta, in milliseconds. */
  firstTokenTimeoutMs: number;
  /** Longest silence of the provider after it, in milliseconds. */
  idleTimeoutMs: number;
  /** When the wait for the first delta is cut so that another provider is asked, in milliseconds; absent means never. */
  fallbackAfterMs?: number | undefined;
}

/** Less time than this is not worth a call of the next provider. */
const minFallbackMs = 250;

/** Makes the call with a signal of its own, which ends it in time. */
export async function endInTime<T>(call: Call, next: (call: Call) => Promise<T>): Promise<T> {
  const { asked, deadline: firstDeltaBy, stop } = call;
  const { job } = asked;
  const { timeoutMs, firstTokenTimeoutMs, idleTimeoutMs } = asked.settings;
  const fallbackAfterMs = asked.hasFallback ? asked.settings.fallbackAfterMs : undefined;
  const stream = job.deltas && { firstDeltaBy, firstTokenTimeoutMs, idleTimeoutMs, fallbackAfterMs };
  const limits = { timeoutMs, deadline: asked.chatJob.deadline, now: job.now, stop, stream };
  const signal = new CallSignal(limits);
  call.signal = signal.signal;
  call.onActivity = () => signal.recordActivity();
  call.onBegun(() => signal.beginStream());
  try {
    return await next(call);
  } finally {
    signal.release();
  }
}

/**
 * A signal of its own for every provider call. It aborts with `provider_timeout` when the provider takes too long, with `timeout`
 * when the caller's deadline comes first, or with the reason of `stop`. A stream's first delta starts other limits: one
 * for the provider's silence, and the deadline for the whole.
 *
 * Not `AbortSignal.any`: a call's signal must not stay registered at the job's after the call.
 */
export class CallSignal {
  readonly #limits: CallLimits;
  readonly #controller = new AbortController();
  readonly #onStop: () => void;
  #timer: NodeJS.Timeout;
  #idleTimer: NodeJS.Timeout | undefined;

  constructor(limits: CallLimits) {
    const { timeoutMs, deadline, stop, stream } = limits;
    this.#limits = limits;
    const providerMs = Math.min(timeoutMs, stream?.firstTokenTimeoutMs ?? timeoutMs);
    const callerMs = this.#msUntil(stream?.firstDeltaBy ?? deadline);
    const cutMs = stream?.fallbackAfterMs ?? Number.POSITIVE_INFINITY;
    if (cutMs < providerMs && cutMs + minFallbackMs <= callerMs)
      this.#timer = this.#abortAfter(cutMs, 'provider_timeout', new CutForFallback());
    else
      this.#timer = this.#abortAfter(
        Math.min(callerMs, providerMs),
        callerMs <= providerMs ? 'timeout' : 'provider_timeout',
      );
    this.#onStop = () => this.#controller.abort(stop.reason);
    if (stop.aborted) this.#onStop();
    stop.addEventListener('abort', this.#onStop, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** To be called at a stream's first delta. */
  beginStream(): void {
    const { deadline, stream } = this.#limits;
    if (stream === undefined || this.#idleTimer !== undefined) return;
    clearTimeout(this.#timer);
    this.#timer = this.#abortAfter(this.#msUntil(deadline), 'timeout');
    this.#idleTimer = this.#abortAfter(stream.idleTimeoutMs, 'provider_timeout');
  }

  /** To be called whenever the provider sends something. */
  recordActivity(): void {
    this.#idleTimer?.refresh();
  }

  /** Ends its timers and listeners, once the call is over. */
  release(): void {
    clearTimeout(this.#timer);
    clearTimeout(this.#idleTimer);
    this.#idleTimer = undefined;
    this.#limits.stop.removeEventListener('abort', this.#onStop);
  }

  #msUntil(time: number): number {
    const { now = Date.now } = this.#limits;
    return Math.max(0, time - now());
  }

  #abortAfter(ms: number, code: FailureCode, cause?: Error): NodeJS.Timeout {
    return setTimeout(() => this.#controller.abort(new Failure(code, cause && { cause })), ms);
  }
}
