/** Each upper bound is this much above the one before: so a percentile is at most a tenth too high. */
const growth = 1.1;
/** Up to an hour, the longest time that a call may take. */
const bounds = Array.from(
  { length: Math.ceil(Math.log(3_600_000) / Math.log(growth)) + 1 },
  (_, n) => growth ** n,
);

/** Durations, counted by their length: memory does not grow with their number. */
export class DurationCounts {
  readonly #counts = new Uint32Array(bounds.length);
  #count = 0;
  #sumMs = 0;

  get count(): number {
    return this.#count;
  }

  get sumMs(): number {
    return this.#sumMs;
  }

  /** One below 0, by a clock that was set back, counts as 0. */
  record(ms: number): void {
    const duration = Math.max(0, ms);
    const index = indexOf(duration);
    this.#counts[index] = (this.#counts[index] ?? 0) + 1;
    this.#count += 1;
    this.#sumMs += duration;
  }

  /** The duration that this share of all does not exceed, in whole milliseconds; 0 without any. */
  static percentile(all: readonly DurationCounts[], share: number): number {
    const total = all.reduce((sum, { count }) => sum + count, 0);
    const rank = Math.ceil(share * total);
    let seen = 0;
    for (const [n, bound] of bounds.entries()) {
      for (const counts of all) seen += counts.#counts[n] ?? 0;
      if (seen >= rank) return total === 0 ? 0 : Math.round(bound);
    }
    return Math.round(bounds.at(-1) ?? 0);
  }
}

const indexOf = (ms: number): number =>
  ms <= 1 ? 0 : Math.min(bounds.length - 1, Math.ceil(Math.log(ms) / Math.log(growth)));
