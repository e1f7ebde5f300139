import { DurationCounts } from '../../shared/metrics/duration-counts.js';
import type { ServiceStats } from '../../shared/protocol/messages.js';
import type { Outcome } from '../../shared/protocol/outcome.js';
import { MovingMean } from '../gate/moving-mean.js';
import type { JobEnd } from '../job/outcomes.js';
import type { JobListener } from '../job/running-job.js';

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
