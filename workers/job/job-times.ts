import type { Timings } from './outcomes.js';
import type { PoolMetrics } from './pool-metrics.js';

interface JobTimesDeps {
  metrics: Pick<PoolMetrics, 'recordBegun'>;
  /** The clock of the deadlines, in milliseconds since the epoch: the store's. */
  now?: () => number;
}

/** When a job was enqueued and begun, in milliseconds since the epoch; it begins with its first call. */
export class JobTimes {
  #startedAt: number | undefined;
  #firstDeltaAt: number | undefined;

  constructor(
    readonly enqueuedAt: number,
    readonly deps: JobTimesDeps,
  ) {}

  /** The wait for a model counts as time in the queue. */
  begin(): void {
    if (this.#startedAt !== undefined) return;
    this.#startedAt = this.#now();
    this.deps.metrics.recordBegun(this.timings.queueMs);
  }

  recordFirstDelta(): void {
    this.#firstDeltaAt ??= this.#now();
  }

  get timings(): Timings {
    const now = this.#now();
    const startedAt = this.#startedAt ?? now;
    const firstDeltaAt = this.#firstDeltaAt;
    // Two processes know the store's time to within a few milliseconds.
    return {
      queueMs: Math.max(0, startedAt - this.enqueuedAt),
      providerMs: now - startedAt,
      ...(firstDeltaAt !== undefined && { firstTokenMs: Math.max(0, firstDeltaAt - startedAt) }),
    };
  }

  #now(): number {
    return this.deps.now?.() ?? Date.now();
  }
}
