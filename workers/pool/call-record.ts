import type { CallStats, LastError } from '../../shared/protocol/messages.js';

/** The end of a call: a reply, the provider's fault, a 429, or one that says nothing about the provider. */
export type CallResult = 'reply' | 'fault' | 'limit' | 'other';

const callsMs = 60_000;
/** Calls that are kept: enough for percentiles, and little to sort once a second. */
const maxCalls = 500;

/** The calls of a pool in the last minute, and its last failure. */
export class CallRecord {
  readonly #now: () => number;
  /** Oldest first. */
  #calls: { readonly result: CallResult; readonly tookMs: number; readonly endedAt: number }[] = [];
  /** The last failure, and when calls began to fail with its code. */
  #failure: { readonly code: string; readonly beganAt: number; readonly lastAt: number } | undefined;
  /** Whether a call has given a reply since. */
  #hasReplied = false;

  /** `now` is a clock that never jumps, in milliseconds. */
  constructor(now = () => performance.now()) {
    this.#now = now;
  }

  /** `code` is the failure's, of a call that its provider or its caller did not end well. */
  record(result: CallResult, { tookMs, code }: { tookMs: number; code?: string | undefined }): void {
    const now = this.#now();
    this.#calls.push({ result, tookMs, endedAt: now });
    if (this.#calls.length > 2 * maxCalls) this.#forgetCalls();
    if (result === 'reply') this.#hasReplied = true;
    if (code === undefined) return;
    const beganAt = this.#failure?.code === code && !this.#hasReplied ? this.#failure.beganAt : now;
    this.#failure = { code, beganAt, lastAt: now };
    this.#hasReplied = false;
  }

  /** The last call that failed; undefined before the first. */
  get lastError(): LastError | undefined {
    if (this.#failure === undefined) return undefined;
    const { code, beganAt, lastAt } = this.#failure;
    const ago = (at: number) => Math.round(this.#now() - at);
    return { code, agoMs: ago(lastAt), sinceMs: ago(beganAt) };
  }

  /** How the calls have gone; undefined when there were none. */
  get stats(): CallStats | undefined {
    this.#forgetCalls();
    const calls = this.#calls;
    if (calls.length === 0) return undefined;
    const share = (wanted: CallResult) =>
      calls.filter(({ result }) => result === wanted).length / calls.length;
    const replies = calls.filter(({ result }) => result === 'reply').map(({ tookMs }) => tookMs);
    const latencyMs = { p50: percentile(replies, 0.5), p95: percentile(replies, 0.95) };
    return {
      count: calls.length,
      errorRate: share('fault'),
      rateLimitRate: share('limit'),
      latencyMs: replies.length > 0 ? latencyMs : undefined,
    };
  }

  #forgetCalls(): void {
    const since = this.#now() - callsMs;
    this.#calls = this.#calls.slice(-maxCalls).filter(({ endedAt }) => endedAt > since);
  }
}

/** The value that this share of the values does not exceed, in whole milliseconds. */
function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return Math.round(sorted[Math.ceil(share * sorted.length) - 1] ?? 0);
}
