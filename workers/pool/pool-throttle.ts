import type { Breaker } from '../job/breaker.js';
import type { LoadTracker } from '../job/load-tracker.js';
import type { Slots } from '../job/slots.js';
import type { ClockGuard } from './clock-guard.js';

/** Decides whether a pool takes jobs, and how many at once; nobody else pauses or resumes its worker. */
export interface PoolThrottle {
  /** Jobs at once at this moment, but for those that have no slot. */
  readonly concurrency: number;
  /** To be called when the breaker or the clock has changed, when a job has left or taken its slot, and when one has ended while the breaker probes. */
  adjust(): void;
}

interface PoolThrottleDeps {
  worker: GovernedWorker;
  breaker: Pick<Breaker, 'state' | 'isProbing'>;
  load: Pick<LoadTracker, 'inFlight'>;
  slots: Pick<Slots, 'away'>;
  clock: Pick<ClockGuard, 'isOff'>;
  /** Jobs at once of a pool that is well. */
  concurrency: number;
}

/** What of BullMQ's worker the throttle works with. */
interface GovernedWorker {
  concurrency: number;
  pause(doNotWaitActive: true): Promise<void>;
  resume(): Promise<void>;
}

/**
 * A pool takes no jobs while the breaker of its account is open, so that a healthy worker elsewhere gets them, nor
 * while its clock is off: locks in PostgreSQL are timed by it. To probe, it takes one at a time, beside those that may hang since before the breaker opened. For each job that waits here without a
 * slot it takes another. `pause` and `resume` make a new concurrency count at once instead of when the next job ends. A
 * paused worker looks for no abandoned jobs; it does so first when it resumes.
 */
export function createPoolThrottle({
  worker,
  breaker,
  load,
  slots,
  clock,
  concurrency,
}: PoolThrottleDeps): PoolThrottle {
  const current = () => {
    if (breaker.state !== 'half-open') return concurrency;
    return Math.max(1, load.inFlight - slots.away + (breaker.isProbing ? 0 : 1));
  };
  return {
    get concurrency() {
      return current();
    },
    adjust: () => {
      worker.concurrency = current() + slots.away;
      void worker.pause(true);
      if (breaker.state !== 'open' && !clock.isOff) void worker.resume();
    },
  };
}
