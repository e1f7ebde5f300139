import type { Breaker } from './breaker.js';
import type { Hold } from './hold.js';

/** Decides whether a pool takes jobs, and how many at once; nobody else pauses or resumes its worker. */
export interface Intake {
  /** To be called when the breaker has changed, and when a hold has begun or ended. */
  adjust(): void;
}

interface IntakeDeps {
  worker: GovernedWorker;
  breaker: Pick<Breaker, 'state'>;
  hold: Pick<Hold, 'leftMs'>;
  /** Jobs at once of a pool that is well. */
  concurrency: number;
}

/** What of BullMQ's worker the intake works with. */
interface GovernedWorker {
  concurrency: number;
  pause(doNotWaitActive: true): Promise<void>;
  resume(): Promise<void>;
}

/**
 * A pool takes no jobs while its breaker is open, so that a healthy worker elsewhere gets them, nor while its provider
 * has told it to wait; to probe, it takes one at a time. `pause` and `resume` make a new concurrency count at once
 * instead of when the next job ends. A paused worker looks for no abandoned jobs; it does so first when it resumes.
 */
export function createIntake({ worker, breaker, hold, concurrency }: IntakeDeps): Intake {
  return {
    adjust: () => {
      worker.concurrency = breaker.state === 'half-open' ? 1 : concurrency;
      void worker.pause(true);
      if (breaker.state !== 'open' && hold.leftMs === 0) void worker.resume();
    },
  };
}
