import { createHistogram } from 'node:perf_hooks';

/** Up to an hour, the longest call. One significant digit makes a percentile at most a tenth too high. */
const range = { lowest: 1, highest: 3_600_000, figures: 1 };

/** Durations, counted by their length in a histogram of Node's: memory does not grow with their number. */
export class DurationCounts {
  readonly #histogram = createHistogram(range);
  #sumMs = 0;

  get count(): number {
    return this.#histogram.count;
  }

  get sumMs(): number {
    return this.#sumMs;
  }

  /** One below 0, by a clock that was set back, counts as 0. */
  record(ms: number): void {
    const duration = Math.max(0, ms);
    this.#histogram.record(Math.min(Math.max(range.lowest, Math.round(duration)), range.highest));
    this.#sumMs += duration;
  }

  /** The duration that this share of all does not exceed, in whole milliseconds; 0 without any. */
  static percentile(all: readonly DurationCounts[], share: number): number {
    const merged = createHistogram(range);
    for (const counts of all) merged.add(counts.#histogram);
    return merged.count === 0 ? 0 : merged.percentile(100 * share);
  }
}
