import type { Outcome } from '../../shared/protocol/outcome.js';
import type { JobEnd } from './outcomes.js';
import type { JobListener, RunningJob } from './running-job.js';

/** The mean follows the last few dozen calls. */
const weight = 1 / 20;

/** How long the jobs of a pool take. */
export class LoadTracker implements JobListener {
  #meanJobMs = 0;

  /** Moving mean of the time that the calls of an answered job take, in milliseconds; 0 before the first. */
  get meanJobMs(): number {
    return this.#meanJobMs;
  }

  ended(_: RunningJob, end: JobEnd | undefined): void {
    if (end) this.recordOutcome(end.own);
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
