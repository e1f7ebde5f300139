import type { Breaker } from '../job/breaker.js';
import type { LoadTracker } from '../job/load-tracker.js';
import type { Slots } from '../job/slots.js';
import type { ClockGuard } from './clock-guard.js';
import type { LiveSettings } from './live-settings.js';

interface PoolThrottleDeps {
  worker: ThrottledWorker;
  settings: Pick<LiveSettings, 'current'>;
  breaker: Pick<Breaker, 'state' | 'isProbing'>;
  load: Pick<LoadTracker, 'inFlight'>;
  slots: Pick<Slots, 'parked'>;
  clock: Pick<ClockGuard, 'isOff'>;
}

/** The part of BullMQ's worker that the throttle sets. */
interface ThrottledWorker {
  concurrency: number;
  pause(doNotWaitActive: true): Promise<void>;
  resume(): Promise<void>;
}

/**
 * Decides whether a pool takes jobs, and how many at once; nothing else pauses or resumes its worker. A pool takes no jobs
 * while the breaker of its account is open, so that a worker elsewhere gets them, nor while its clock is off: locks in
 * PostgreSQL are timed by it. To probe, it takes one job at a time, beside calls that have been hanging since before the
 * breaker opened. For each parked job it takes another.
 */
export class PoolThrottle {
  readonly #deps: PoolThrottleDeps;
  #isDue = false;

  constructor(deps: PoolThrottleDeps) {
    this.#deps = deps;
  }

  /** Jobs at once at this moment, not counting parked ones. */
  get concurrency(): number {
    const { settings, breaker, load, slots } = this.#deps;
    if (breaker.state !== 'half-open') return settings.current.concurrency;
    return Math.max(1, load.inFlight - slots.parked + (breaker.isProbing ? 0 : 1));
  }

  /**
   * To be called after a change of the settings, the breaker or the clock, and when a job has ended while the breaker probes.
   * `pause` and `resume` make a new concurrency effective at once instead of when the next job ends. A paused worker looks
   * for no abandoned jobs; it does so first when it resumes.
   */
  apply(): void {
    const { worker, breaker, slots, clock } = this.#deps;
    worker.concurrency = this.concurrency + slots.parked;
    void worker.pause(true);
    if (breaker.state !== 'open' && !clock.isOff) void worker.resume();
  }

  /** To be called when a job has been parked or unparked; applies all changes of this turn of the event loop at once. */
  applySoon(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    setImmediate(() => {
      this.#isDue = false;
      this.apply();
    });
  }
}
