import type { CallStats } from '../../shared/protocol/messages.js';

/** How a call ended: with a reply, by the provider's fault, with a 429, or in a way that tells nothing of the provider. */
export type CallResult = 'reply' | 'fault' | 'limit' | 'other';

interface RecentCall {
  readonly result: CallResult;
  readonly tookMs: number;
  readonly endedAt: number;
}

const windowMs = 60_000;
/** Calls that are kept: enough for percentiles, and little to sort once a second. */
const maxCalls = 500;

/** The calls of the last minute, the latest five hundred at most. */
export class RecentCalls {
  /** Oldest first. */
  #calls: RecentCall[] = [];
  readonly #now: () => number;

  /** `now` is a clock that never jumps, in milliseconds. */
  constructor(now = () => performance.now()) {
    this.#now = now;
  }

  record(result: CallResult, tookMs: number): void {
    this.#calls.push({ result, tookMs, endedAt: this.#now() });
    if (this.#calls.length > 2 * maxCalls) this.#forget();
  }

  /** How the calls have gone; undefined when there were none. */
  get stats(): CallStats | undefined {
    this.#forget();
    const calls = this.#calls;
    if (calls.length === 0) return undefined;
    const share = (result: CallResult) =>
      calls.filter((call) => call.result === result).length / calls.length;
    const replies = calls.filter(({ result }) => result === 'reply').map(({ tookMs }) => tookMs);
    return {
      count: calls.length,
      errorRate: share('fault'),
      rateLimitRate: share('limit'),
      ...(replies.length > 0 && {
        latencyMs: { p50: percentile(replies, 0.5), p95: percentile(replies, 0.95) },
      }),
    };
  }

  #forget(): void {
    const since = this.#now() - windowMs;
    this.#calls = this.#calls.slice(-maxCalls).filter(({ endedAt }) => endedAt > since);
  }
}

/** The value that this share of the values does not exceed, in whole milliseconds. */
function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return Math.round(sorted[Math.ceil(share * sorted.length) - 1] ?? 0);
}
