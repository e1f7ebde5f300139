/** It follows the last few dozen values. */
const weight = 1 / 20;

/** A moving mean; undefined before the first value. */
export class MovingMean {
  #value: number | undefined;

  get value(): number | undefined {
    return this.#value;
  }

  record(next: number): void {
    const mean = this.#value;
    this.#value = mean === undefined ? next : mean + (next - mean) * weight;
  }
}
