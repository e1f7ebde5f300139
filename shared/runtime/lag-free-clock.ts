/** How often the clock looks at the time, and the most that counts between two looks, in milliseconds. */
const everyMs = 100;
const maxStepMs = 250;

/**
 * A monotonic clock that leaves out the time by which this process itself is late. Ages of messages go by it: what has
 * arrived and waits to be read must not look old, nor its sender gone.
 */
export class LagFreeClock {
  readonly #timer = setInterval(() => this.#look(), everyMs).unref();
  #passedMs = 0;
  #lookedAt = performance.now();

  /** Milliseconds since the clock was made, without those by which the event loop was late. */
  readonly now = (): number => this.#passedMs + Math.min(performance.now() - this.#lookedAt, maxStepMs);

  close(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    this.#passedMs = this.now();
    this.#lookedAt = performance.now();
  }
}
