import { DurationCounts } from '../../shared/metrics/duration-counts.js';
import type { ServiceStats } from '../../shared/protocol/messages.js';

/** Jobs that ended within one slice of time, and how many were waiting at its beginning. */
interface Slice {
  readonly beganAt: number;
  readonly durations: DurationCounts;
  waitingBefore: number | undefined;
}

const windowMs = 300_000;
const sliceMs = 10_000;

/**
 * How long the jobs took that ended in the last five minutes. A job's time begins with its first call, as that of its slot does.
 */
export class ServiceTimes {
  readonly #now: () => number;
  /** Oldest first. */
  #slices: Slice[];

  /** `now` is a clock that never jumps, in milliseconds. */
  constructor(now = () => performance.now()) {
    this.#now = now;
    this.#slices = [newSlice(now())];
  }

  record(tookMs: number): void {
    this.#current().durations.record(tookMs);
  }

  /** How many jobs of the provider wait at this moment, over all workers. */
  recordWaiting(count: number): void {
    this.#current().waitingBefore ??= count;
  }

  /** Undefined when no job has ended. */
  get stats(): ServiceStats | undefined {
    this.#current();
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
      ...(waitingBefore !== undefined && { waitingBefore }),
    };
  }

  /** The slice of this moment; those that are over five minutes old are forgotten. */
  #current(): Slice {
    const now = this.#now();
    const latest = this.#slices.at(-1);
    if (latest && now - latest.beganAt < sliceMs) return latest;
    const slice = newSlice(now);
    this.#slices = [...this.#slices.filter(({ beganAt }) => now - beganAt < windowMs), slice];
    return slice;
  }
}

const newSlice = (beganAt: number): Slice => ({
  beganAt,
  durations: new DurationCounts(),
  waitingBefore: undefined,
});
