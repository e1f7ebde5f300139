import type { Worker, WorkerOptions } from 'bullmq';
import type { Gate } from '../gate/gate.js';
import type { Load } from '../job/running-jobs.js';
import type { ClockGuard } from './clock-guard.js';
import type { LiveSettings } from './live-settings.js';

interface PoolThrottleDeps {
  worker: Pick<Worker, 'concurrency' | 'pause' | 'resume'> & {
    readonly opts: Pick<WorkerOptions, 'limiter'>;
  };
  settings: Pick<LiveSettings, 'current'>;
  gate: Pick<Gate, 'account' | 'parked'>;
  load: () => Pick<Load, 'inFlight'>;
  clock: Pick<ClockGuard, 'isOff'>;
}

/**
 * Decides whether a pool takes jobs, and how many at once; nothing else pauses or resumes its worker. A pool takes no
 * jobs while operators have paused it, nor while the breaker of its account is open, so that a worker elsewhere gets
 * them, nor while its clock is off: locks in PostgreSQL are timed by it. To probe, it takes one job at a time, beside
 * calls that have been hanging since before the breaker opened. For each parked job it takes another.
 */
export class PoolThrottle {
  readonly #deps: PoolThrottleDeps;
  #isDue = false;

  constructor(deps: PoolThrottleDeps) {
    this.#deps = deps;
  }

  get isTaking(): boolean {
    const { settings, gate, clock } = this.#deps;
    return settings.current.intake !== 'paused' && gate.account.state !== 'open' && !clock.isOff;
  }

  /** Jobs at once at this moment, not counting parked ones. */
  get concurrency(): number {
    const { settings, gate, load } = this.#deps;
    const { state, isProbing } = gate.account;
    if (state !== 'half-open') return settings.current.concurrency;
    return Math.max(1, load().inFlight - gate.parked + (isProbing ? 0 : 1));
  }

  /**
   * To be called after a change of the settings, the breaker or the clock, and when a job has ended while the breaker
   * probes. `pause` and `resume` make a new concurrency effective at once instead of when the next job ends. A paused
   * worker looks for no abandoned jobs; it does so first when it resumes.
   */
  apply(): void {
    const { worker } = this.#deps;
    this.#applyLimits();
    void worker.pause(true);
    if (this.isTaking) void worker.resume();
  }

  /** To be called before the worker runs for the first time: one that is paused then waits to be resumed. */
  applyFirst(): void {
    this.#applyLimits();
    if (!this.isTaking) void this.#deps.worker.pause(true);
  }

  /** To be called when a job was parked or unparked; applies all changes of this turn of the event loop at once. */
  applySoon(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    setImmediate(() => {
      this.#isDue = false;
      this.apply();
    });
  }

  /** The queue's own rate is in the store, which can be wiped; the worker's counts in the same place. */
  #applyLimits(): void {
    const { worker, settings, gate } = this.#deps;
    const { rate } = settings.current;
    worker.concurrency = this.concurrency + gate.parked;
    if (rate) worker.opts.limiter = { max: rate.max, duration: rate.durationMs };
    else delete worker.opts.limiter;
  }
}
