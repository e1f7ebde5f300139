import type { ServiceStats } from '../../shared/protocol/messages.js';

/** Jobs that ended within one slice of time, and how many were waiting at its beginning. */
interface Slice {
  readonly beganAt: number;
  readonly counts: Uint32Array;
  count: number;
  sumMs: number;
  waitingBefore: number | undefined;
}

const windowMs = 300_000;
const sliceMs = 10_000;
/** Each upper bound of the histogram is this much above the one before: so a percentile is at most a tenth too high. */
const growth = 1.1;
/** Up to an hour, the longest time that a call may take. */
const bounds = Array.from(
  { length: Math.ceil(Math.log(3_600_000) / Math.log(growth)) + 1 },
  (_, n) => growth ** n,
);

/**
 * How long the jobs took that ended in the last five minutes, as counts by duration: memory does not grow with their number. A job's
 * time begins with its first call, as that of its slot does.
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
    const slice = this.#current();
    const bounded = Math.max(0, tookMs);
    const index = indexOf(bounded);
    slice.counts[index] = (slice.counts[index] ?? 0) + 1;
    slice.count += 1;
    slice.sumMs += bounded;
  }

  /** How many jobs of the provider wait at this moment, over all workers. */
  recordWaiting(count: number): void {
    this.#current().waitingBefore ??= count;
  }

  /** Undefined when no job has ended. */
  get stats(): ServiceStats | undefined {
    this.#current();
    const [oldest] = this.#slices;
    const count = sum(this.#slices.map((slice) => slice.count));
    if (oldest === undefined || count === 0) return undefined;
    const waitingBefore = this.#slices.flatMap((slice) => slice.waitingBefore ?? [])[0];
    return {
      count,
      overMs: Math.max(1, Math.round(this.#now() - oldest.beganAt)),
      meanMs: Math.round(sum(this.#slices.map(({ sumMs }) => sumMs)) / count),
      p50Ms: this.#percentile(Math.ceil(0.5 * count)),
      p99Ms: this.#percentile(Math.ceil(0.99 * count)),
      ...(waitingBefore !== undefined && { waitingBefore }),
    };
  }

  /** The upper bound of the duration at this rank, from 1. */
  #percentile(rank: number): number {
    let seen = 0;
    for (const [n, bound] of bounds.entries()) {
      seen += sum(this.#slices.map(({ counts }) => counts[n] ?? 0));
      if (seen >= rank) return Math.round(bound);
    }
    return Math.round(bounds.at(-1) ?? 0);
  }

  /** The slice of this moment; those that are over five minutes old are forgotten. */
  #current(): Slice {
    const now = this.#now();
    const latest = this.#slices.at(-1);
    if (latest && now - latest.beganAt < sliceMs) return latest;
    // A pool without jobs and heartbeats for long has no slices in between.
    const slice = newSlice(now);
    this.#slices = [...this.#slices.filter(({ beganAt }) => now - beganAt < windowMs), slice];
    return slice;
  }
}

const newSlice = (beganAt: number): Slice => ({
  beganAt,
  counts: new Uint32Array(bounds.length),
  count: 0,
  sumMs: 0,
  waitingBefore: undefined,
});

const indexOf = (ms: number): number =>
  ms <= 1 ? 0 : Math.min(bounds.length - 1, Math.ceil(Math.log(ms) / Math.log(growth)));

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
