import type { Queue } from 'bullmq';
import { DurationCounts } from '../../shared/metrics/instruments.js';
import type { CallStats, LastError, ServiceStats } from '../../shared/protocol/messages.js';
import type { Outcome } from '../../shared/protocol/outcome.js';
import { countAllWaiting, countWaiting, type WaitingByLevel } from '../../shared/queue/add-attempt.js';
import { MovingMean } from '../gate/evidence.js';
import type { JobEnd } from '../job/outcomes.js';
import type { JobListener } from '../job/running-job.js';

interface BacklogOptions {
  queue: Pick<
    Queue,
    'getCountsPerPriority' | 'getRateLimitTtl' | 'getGlobalRateLimit' | 'removeRateLimitKey'
  >;
  /** A monotonic clock, in milliseconds. */
  now?: () => number;
}

/** An empty queue is counted again after this long: a lost connection is noticed only within six seconds. */
const trustedMs = 5000;
const nothing: WaitingByLevel = { waitedFor: [], async: [] };

/** Counts a pool's waiting jobs. A pool that found none, and has room, gets the next one: it need not ask again. */
export class Backlog {
  readonly #queue: BacklogOptions['queue'];
  readonly #now: () => number;
  #foundEmptyAt = Number.NEGATIVE_INFINITY;
  #forgottenAt = Number.NEGATIVE_INFINITY;

  constructor({ queue, now = () => performance.now() }: BacklogOptions) {
    this.#queue = queue;
    this.#now = now;
  }

  /** To be called when the pool has found the queue empty. */
  recordEmpty(): void {
    this.#foundEmptyAt = this.#now();
  }

  /** To be called when the pool has taken a job, behind which others may wait, and when it may be paused or resumed. */
  forget(): void {
    this.#forgottenAt = this.#now();
  }

  /** The waiting jobs by level; `hasRoom` says whether the pool would take one now. Rejects without the store. */
  async count({ hasRoom }: { hasRoom: boolean }): Promise<WaitingByLevel> {
    const askedAt = this.#now();
    const isKnownEmpty = this.#foundEmptyAt > this.#forgottenAt && askedAt - this.#foundEmptyAt < trustedMs;
    if (hasRoom && isKnownEmpty) return nothing;
    const waiting = await countWaiting(this.#queue);
    if (hasRoom && countAllWaiting(waiting) === 0) this.#foundEmptyAt = askedAt;
    return waiting;
  }

  /**
   * Time until the rate lets another job begin, in milliseconds; 0 if one may. Rejects if the store is unavailable.
   * Ends a window that is longer than the rate says: a worker that had not heard of a change opened it by the old rate.
   */
  async rateLeftMs({ max, durationMs }: { max: number; durationMs: number }): Promise<number> {
    const leftMs = Math.max(0, await this.#queue.getRateLimitTtl(max));
    if (leftMs <= durationMs) return leftMs;
    // This worker may be the one that has not heard.
    const newest = await this.#queue.getGlobalRateLimit();
    if (newest !== null && leftMs <= newest.duration) return leftMs;
    await this.#queue.removeRateLimitKey();
    return 0;
  }
}

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

/** Jobs that ended within one slice of time, and how many were waiting at its beginning. */
interface Slice {
  readonly beganAt: number;
  readonly durations: DurationCounts;
  waitingBefore?: number;
}

const jobsMs = 300_000;
const sliceMs = 10_000;

/** How long the jobs of a pool have taken from their first calls on: a moving mean, and the last five minutes. */
export class ServiceTimes implements JobListener {
  readonly #now: () => number;
  readonly #mean = new MovingMean();
  /** Oldest first. */
  #slices: Slice[] = [];

  /** `now` is a clock that never jumps, in milliseconds. */
  constructor(now = () => performance.now()) {
    this.#now = now;
    // From now on jobs may end.
    this.#slice();
  }

  /** Moving mean of the jobs that were answered, in milliseconds; undefined before the first. */
  get meanMs(): number | undefined {
    return this.#mean.value;
  }

  ended(_: unknown, end: JobEnd | undefined): void {
    if (end === undefined) return;
    const { providerMs } = end.own;
    this.#slice().durations.record(providerMs);
    // The store's clock, by which this was measured, may step back.
    if (providerMs > 0 && showsPace(end.own, this.meanMs ?? 0)) this.#mean.record(providerMs);
  }

  /** How many jobs of the provider wait at this moment, over all workers. */
  recordWaiting(count: number): void {
    this.#slice().waitingBefore ??= count;
  }

  /** How long the jobs of the last five minutes have taken; undefined when none has ended. */
  get stats(): ServiceStats | undefined {
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

  /** The slice of this moment; forgets slices that are over five minutes old. */
  #slice(): Slice {
    const now = this.#now();
    const latest = this.#slices.at(-1);
    if (latest && now - latest.beganAt < sliceMs) return latest;
    const slice: Slice = { beganAt: now, durations: new DurationCounts() };
    this.#slices = [...this.#slices.filter(({ beganAt }) => now - beganAt < jobsMs), slice];
    return slice;
  }
}

/**
 * Whether a job says something about the pace: if it was answered, or timed out after more than the mean. If a shorter
 * one counted, a pool with a long backlog would seem fast and be given more.
 */
function showsPace(outcome: Outcome, meanMs: number): boolean {
  if (outcome.kind !== 'failed') return outcome.kind !== 'cancelled';
  const isTimeout = outcome.code === 'timeout' || outcome.code === 'provider_timeout';
  return isTimeout && outcome.providerMs > meanMs;
}
