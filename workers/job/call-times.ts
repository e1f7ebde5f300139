import { DurationCounts } from '../../shared/metrics/duration-counts.js';
import type { CallStats, LastError, ServiceStats } from '../../shared/protocol/messages.js';
import type { Outcome } from '../../shared/protocol/outcome.js';
import type { JobEnd } from './outcomes.js';
import type { JobListener } from './running-job.js';

/** The end of a call: a reply, the provider's fault, a 429, or one that says nothing about the provider. */
export type CallResult = 'reply' | 'fault' | 'limit' | 'other';

interface EndedCall {
  readonly result: CallResult;
  readonly tookMs: number;
  readonly endedAt: number;
}

/** Calls that failed with one code, with no other result in between. */
interface FailureRun {
  readonly code: string;
  readonly beganAt: number;
  lastAt: number;
  isOver: boolean;
}

/** Jobs that ended within one slice of time, and how many were waiting at its beginning. */
interface Slice {
  readonly beganAt: number;
  readonly durations: DurationCounts;
  waitingBefore: number | undefined;
}

/** The mean follows the last few dozen. */
const weight = 1 / 20;
const callsMs = 60_000;
/** Calls that are kept: enough for percentiles, and little to sort once a second. */
const maxCalls = 500;
const jobsMs = 300_000;
const sliceMs = 10_000;

/**
 * How long the calls of a model, or the calls and jobs of a pool, have taken, and how they ended: a moving mean, the
 * calls of the last minute, the last failure, and the jobs of the last five minutes.
 */
export class CallTimes implements JobListener {
  readonly #now: () => number;
  #meanMs: number | undefined;
  /** Oldest first, as are the slices. */
  #calls: EndedCall[] = [];
  #failures: FailureRun | undefined;
  #slices: Slice[];

  /** `now` is a clock that never jumps, in milliseconds. */
  constructor(now = () => performance.now()) {
    this.#now = now;
    this.#slices = [newSlice(now())];
  }

  /** Moving mean of the answered calls, or jobs, in milliseconds; undefined before the first. */
  get meanMs(): number | undefined {
    return this.#meanMs;
  }

  recordAnswer(tookMs: number): void {
    const mean = this.#meanMs;
    this.#meanMs = mean === undefined ? tookMs : mean + (tookMs - mean) * weight;
  }

  /** `code` is that of the failure, of a call that its provider or its caller did not end well. */
  recordCall(result: CallResult, { tookMs, code }: { tookMs: number; code?: string | undefined }): void {
    this.#calls.push({ result, tookMs, endedAt: this.#now() });
    if (this.#calls.length > 2 * maxCalls) this.#forgetCalls();
    if (code !== undefined) this.#recordFailure(code);
    else if (result === 'reply' && this.#failures) this.#failures.isOver = true;
  }

  ended(_: unknown, end: JobEnd | undefined): void {
    if (end === undefined) return;
    const { providerMs } = end.own;
    this.#slice().durations.record(providerMs);
    // The store's clock, by which this was measured, may step back.
    if (providerMs > 0 && showsPace(end.own, this.#meanMs ?? 0)) this.recordAnswer(providerMs);
  }

  /** How many jobs of the provider wait at this moment, over all workers. */
  recordWaiting(count: number): void {
    this.#slice().waitingBefore ??= count;
  }

  /** The last call that failed; undefined before the first. */
  get lastError(): LastError | undefined {
    if (this.#failures === undefined) return undefined;
    const { code, beganAt, lastAt } = this.#failures;
    const ago = (at: number) => Math.round(this.#now() - at);
    return { code, agoMs: ago(lastAt), sinceMs: ago(beganAt) };
  }

  /** How the calls have gone; undefined when there were none. */
  get calls(): CallStats | undefined {
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

  /** How long the jobs have taken from their first calls on; undefined when none has ended. */
  get jobs(): ServiceStats | undefined {
    this.#slice();
    const [oldest] = this.#slices;
    const all = this.#slices.map(({ durations }) => durations);
    const count = all.reduce((sum, durations) => sum + durations.count, 0);
    if (oldest === undefined || count === 0) return undefined;
    const waitingBefore = this.#slices.flatMap((slice) => slice.waitingBefore ?? [])[0];
    return {
      count,
      overMs: Math.max(1, Math.round(this.#now() - oldest.beganAt)),
      meanMs: Math.round(all.reduce((sum, { sumMs }) => sum + sumMs, 0) / count),
      p50Ms: DurationCounts.percentile(all, 0.5),
      p99Ms: DurationCounts.percentile(all, 0.99),
      waitingBefore,
    };
  }

  #recordFailure(code: string): void {
    const now = this.#now();
    const isSame = this.#failures?.code === code && !this.#failures.isOver;
    if (this.#failures && isSame) this.#failures.lastAt = now;
    else this.#failures = { code, beganAt: now, lastAt: now, isOver: false };
  }

  #forgetCalls(): void {
    const since = this.#now() - callsMs;
    this.#calls = this.#calls.slice(-maxCalls).filter(({ endedAt }) => endedAt > since);
  }

  /** The slice of this moment; forgets slices that are over five minutes old. */
  #slice(): Slice {
    const now = this.#now();
    const latest = this.#slices.at(-1);
    if (latest && now - latest.beganAt < sliceMs) return latest;
    const slice = newSlice(now);
    this.#slices = [...this.#slices.filter(({ beganAt }) => now - beganAt < jobsMs), slice];
    return slice;
  }
}

const newSlice = (beganAt: number): Slice => ({
  beganAt,
  durations: new DurationCounts(),
  waitingBefore: undefined,
});

/**
 * Whether a job says something about the pace: if it was answered, or timed out after more than the mean. If a shorter
 * one counted, a pool with a long backlog would seem fast and be given more.
 */
function showsPace(outcome: Outcome, meanMs: number): boolean {
  if (outcome.kind !== 'failed') return outcome.kind !== 'cancelled';
  const isTimeout = outcome.code === 'timeout' || outcome.code === 'provider_timeout';
  return isTimeout && outcome.providerMs > meanMs;
}

/** The value that this share of the values does not exceed, in whole milliseconds. */
function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return Math.round(sorted[Math.ceil(share * sorted.length) - 1] ?? 0);
}
