/** The mean follows the last few dozen. */
const weight = 1 / 20;

/** How long calls, or jobs, have taken: a moving mean of those that were answered. */
export class CallTimes {
  #meanMs: number | undefined;

  /** In milliseconds; undefined before the first answer. */
  get meanMs(): number | undefined {
    return this.#meanMs;
  }

  recordAnswer(tookMs: number): void {
    const mean = this.#meanMs;
    this.#meanMs = mean === undefined ? tookMs : mean + (tookMs - mean) * weight;
  }
}
