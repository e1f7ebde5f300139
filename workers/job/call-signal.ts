import { Failure, type FailureCode } from '../../shared/failures.js';
import { CutForFallback } from '../gate/ends.js';
import type { PassedCall, PreparedCall, TimedCall } from './call.js';

/** Less time than this is not worth a call of the next provider. */
const minFallbackMs = 250;

/** Makes the call with a signal of its own, which ends it in time. */
export async function endInTime<T>(call: PreparedCall, next: (call: TimedCall) => Promise<T>): Promise<T> {
  const signal = new CallSignal(call);
  const onLife = () => signal.recordLife();
  const begin = () => {
    signal.beginStream();
    call.begin();
  };
  try {
    return await next({ ...call, signal: signal.signal, onLife, begin });
  } finally {
    signal.release();
  }
}

/**
 * A signal of its own for every provider call. It aborts with `provider_timeout` when the provider takes too long, with
 * `timeout` when the caller's deadline comes first, or with the reason of `stop`. A stream's first delta starts other
 * limits: one for the provider's silence, and the deadline for the whole. A call whose schema is compiled first may
 * take until the deadline, without its slot, if the gate has a place for it by then.
 * Not `AbortSignal.any`: a call's signal must not stay registered at the job's after the call.
 */
export class CallSignal {
  readonly #call: PassedCall;
  readonly #controller = new AbortController();
  readonly signal = this.#controller.signal;
  readonly #onStop: () => void;
  #timer: NodeJS.Timeout;
  #idleTimer: NodeJS.Timeout | undefined;
  #place: Disposable | undefined;

  constructor(call: PassedCall) {
    this.#call = call;
    const { job, deadline, stop, pass, hasFallback } = call;
    const { timeoutMs, firstTokenTimeoutMs, fallbackAfterMs = Number.POSITIVE_INFINITY } = call.settings;
    const isStream = job.deltas !== undefined;
    const limitMs = isStream ? Math.min(timeoutMs, firstTokenTimeoutMs) : timeoutMs;
    const callerMs = this.#msUntil(deadline);
    const mayBeCut =
      isStream && !pass.isCompiling && hasFallback && fallbackAfterMs + minFallbackMs <= callerMs;
    if (mayBeCut && fallbackAfterMs < limitMs)
      this.#timer = this.#abortAfter(fallbackAfterMs, 'provider_timeout', new CutForFallback());
    else if (callerMs <= limitMs) this.#timer = this.#abortAfter(callerMs, 'timeout');
    else this.#timer = setTimeout(() => this.#outlast(), limitMs);
    this.#onStop = () => this.#controller.abort(stop.reason);
    if (stop.aborted) this.#onStop();
    stop.addEventListener('abort', this.#onStop, { once: true });
  }

  /** To be called at a stream's first delta. */
  beginStream(): void {
    if (this.#idleTimer !== undefined) return;
    const { chatJob, settings } = this.#call;
    clearTimeout(this.#timer);
    this.#timer = this.#abortAfter(this.#msUntil(chatJob.deadline), 'timeout');
    this.#idleTimer = this.#abortAfter(settings.idleTimeoutMs, 'provider_timeout');
  }

  /** To be called whenever the provider sends something. */
  recordLife(): void {
    this.#idleTimer?.refresh();
  }

  release(): void {
    clearTimeout(this.#timer);
    clearTimeout(this.#idleTimer);
    this.#idleTimer = undefined;
    this.#place?.[Symbol.dispose]();
    this.#place = undefined;
    this.#call.stop.removeEventListener('abort', this.#onStop);
  }

  /** The provider has had its time. Others wait for a probe, so it ends. */
  #outlast(): void {
    const { pass, deadline } = this.#call;
    if (pass.isCompiling && !pass.isProbe) this.#place = pass.outlast();
    if (this.#place) this.#timer = this.#abortAfter(this.#msUntil(deadline), 'timeout');
    else this.#controller.abort(new Failure('provider_timeout'));
  }

  #msUntil(time: number): number {
    return Math.max(0, time - this.#call.job.now());
  }

  #abortAfter(ms: number, code: FailureCode, cause?: Error): NodeJS.Timeout {
    return setTimeout(() => this.#controller.abort(new Failure(code, cause && { cause })), ms);
  }
}
