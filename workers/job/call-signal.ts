import { Failure, type FailureCode, type TimeLimit } from '../../shared/failures.js';
import { CutForFallback } from '../gate/ends.js';
import type { PreparedCall, TimedCall } from './call.js';

/** Less time than this is not worth a call of the next provider. */
const minFallbackMs = 250;

/** Makes the call with a signal of its own, which ends it in time. */
export async function endInTime<T>(call: PreparedCall, next: (call: TimedCall) => Promise<T>): Promise<T> {
  const signal = new CallSignal(call);
  const show = () => {
    signal.show();
    call.show();
  };
  const life = { onLife: () => signal.recordLife(), onBegin: () => signal.begin() };
  try {
    return await next({ ...call, ...life, signal: signal.signal, show });
  } finally {
    signal.release();
  }
}

/**
 * A signal of its own for every provider call. It aborts with `provider_timeout` when the provider takes too long, with
 * `timeout` when the caller's deadline comes first, or with the reason of `stop`. A stream is also bounded by the
 * provider's silence: until its first sign of life, and then between two of them. Once a part of it is shown, the
 * deadline alone bounds the whole, and its silence is that of a reply which is being written.
 * Not `AbortSignal.any`: a call's signal must not stay registered at the job's after the call.
 */
export class CallSignal {
  readonly #controller = new AbortController();
  readonly signal = this.#controller.signal;
  readonly #onStop: () => void;
  /** Ends the call, however much the provider sends. */
  #whole: NodeJS.Timeout;
  /** Ends a stream that is silent; undefined while its silence says nothing. */
  #silence: NodeJS.Timeout | undefined;
  /** Ends a stream that has not begun, for its fallback. */
  #cut: NodeJS.Timeout | undefined;

  constructor(private readonly call: PreparedCall) {
    const { job, sent, deadline, stop, hasFallback } = call;
    const { timeoutMs, fallbackAfterMs = Number.POSITIVE_INFINITY } = call.settings;
    const callerMs = this.#msUntil(deadline);
    this.#whole =
      callerMs <= timeoutMs
        ? this.#abortAfter(callerMs, { code: 'timeout' })
        : this.#abortAt({ ms: timeoutMs, setting: 'timeoutMs' });
    if (sent.isStreamed)
      this.#silence = this.#abortAt({ ms: firstTokenMsOf(call), setting: 'firstTokenTimeoutMs' });
    const mayBeCut = job.deltas && hasFallback;
    if (mayBeCut && fallbackAfterMs + minFallbackMs <= callerMs)
      this.#cut = this.#abortAt({ ms: fallbackAfterMs, setting: 'fallbackAfterMs' }, new CutForFallback());
    this.#onStop = () => this.#controller.abort(stop.reason);
    if (stop.aborted) this.#onStop();
    stop.addEventListener('abort', this.#onStop, { once: true });
  }

  /** To be called for each sign of life. */
  recordLife(): void {
    const { progress } = this.call;
    if (progress.isAlive) return void this.#silence?.refresh();
    progress.isAlive = true;
    this.call.pass.onLife();
    if (this.#silence) this.#listen();
  }

  /** To be called for the first part of the reply, whether or not it is shown. */
  begin(): void {
    const { progress, sent } = this.call;
    progress.hasBegun = true;
    clearTimeout(this.#cut);
    if (sent.isStreamed) this.#listen();
  }

  /** To be called when the first part of a stream is shown. */
  show(): void {
    const { chatJob, progress } = this.call;
    progress.isShown = true;
    clearTimeout(this.#whole);
    this.#whole = this.#abortAfter(this.#msUntil(chatJob.deadline), { code: 'timeout' });
    this.#listen();
  }

  release(): void {
    for (const timer of [this.#whole, this.#silence, this.#cut]) clearTimeout(timer);
    this.#silence = undefined;
    this.call.stop.removeEventListener('abort', this.#onStop);
  }

  /** Bounds the silence from now on. A model may think for longer than it may pause while it writes. */
  #listen(): void {
    const { progress, settings } = this.call;
    const { idleTimeoutMs, firstTokenTimeoutMs } = settings;
    const isIdle = progress.isShown || idleTimeoutMs >= firstTokenTimeoutMs;
    clearTimeout(this.#silence);
    this.#silence = this.#abortAt(
      isIdle
        ? { ms: idleTimeoutMs, setting: 'idleTimeoutMs', fellSilent: true }
        : { ms: firstTokenTimeoutMs, setting: 'firstTokenTimeoutMs', fellSilent: true },
    );
  }

  #msUntil(time: number): number {
    return Math.max(0, time - this.call.job.now());
  }

  #abortAt(limit: TimeLimit, cause?: Error): NodeJS.Timeout {
    return this.#abortAfter(limit.ms, { code: 'provider_timeout', facts: { limit, cause } });
  }

  #abortAfter(ms: number, { code, facts }: { code: FailureCode; facts?: Failure['facts'] }): NodeJS.Timeout {
    return setTimeout(() => this.#controller.abort(new Failure(code, facts)), ms);
  }
}

const firstTokenMsOf = ({ hasFallback, settings }: PreparedCall): number =>
  (hasFallback ? settings.firstTokenBeforeFallbackMs : undefined) ?? settings.firstTokenTimeoutMs;
