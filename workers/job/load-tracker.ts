import type { Outcome } from '../../shared/protocol/outcome.js';

interface LoadOptions {
  /** A monotonic clock, in milliseconds. */
  now?: () => number;
  onEnd?: () => void;
}

/** The mean follows the last few dozen calls. */
const weight = 1 / 20;

/** How busy a pool is. */
export class LoadTracker {
  readonly #now: () => number;
  readonly #onEnd: () => void;
  /** When the running jobs began, oldest first. */
  readonly #startedAt = new Map<symbol, number>();
  #meanJobMs = 0;

  constructor({ now = () => performance.now(), onEnd = () => {} }: LoadOptions = {}) {
    this.#now = now;
    this.#onEnd = onEnd;
  }

  get inFlight(): number {
    return this.#startedAt.size;
  }

  /** Age of the oldest running job, in milliseconds; undefined when none is running. */
  get oldestJobMs(): number | undefined {
    const [oldest] = this.#startedAt.values();
    return oldest === undefined ? undefined : Math.round(this.#now() - oldest);
  }

  /** Moving mean of the time that the calls of an answered job take, in milliseconds; 0 before the first. */
  get meanJobMs(): number {
    return this.#meanJobMs;
  }

  async track<T>(job: () => Promise<T>): Promise<T> {
    const key = Symbol('job');
    this.#startedAt.set(key, this.#now());
    try {
      return await job();
    } finally {
      this.#startedAt.delete(key);
      this.#onEnd();
    }
  }

  /**
   * Records how long the calls of a job took that was answered or timed out. One that timed out would have taken longer: if
   * it counted as short, a pool with a long backlog would seem fast and be given more. Other outcomes say nothing about the pace.
   */
  recordOutcome(outcome: Outcome): void {
    const { kind, providerMs } = outcome;
    const isTimeout =
      kind === 'failed' && (outcome.code === 'timeout' || outcome.code === 'provider_timeout');
    const isAnswered = kind !== 'failed' && kind !== 'cancelled';
    const mean = this.#meanJobMs;
    // The store's clock, by which this was measured, may step back.
    if (providerMs <= 0 || !(isAnswered || (isTimeout && providerMs > mean))) return;
    this.#meanJobMs = mean === 0 ? providerMs : mean + (providerMs - mean) * weight;
  }
}
