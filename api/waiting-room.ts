import type { ProviderId } from '../shared/contract.js';
import type { Outcome } from '../shared/outcome.js';

/** A job somebody waits for. */
export interface AwaitedJob {
  readonly jobId: string;
  readonly provider: ProviderId;
}

/** Where requests wait for the outcome of their job; each waiter is settled exactly once. */
export interface WaitingRoom {
  /** Resolves with the outcome, or with `undefined` when the deadline (milliseconds since the epoch) passes first. */
  wait(job: AwaitedJob, deadline: number): Promise<Outcome | undefined>;
  /** Settles the waiter of this job; does nothing for a job nobody waits for. */
  settle(jobId: string, outcome: Outcome): void;
  /** Stops waiting, as if the deadline had passed. */
  giveUp(jobId: string): void;
  /** The jobs that have been waited for since before `since` (milliseconds since the epoch). */
  waitingSince(since: number): AwaitedJob[];
  readonly size: number;
}

interface Waiter {
  readonly job: AwaitedJob;
  readonly since: number;
  readonly settle: (outcome: Outcome | undefined) => void;
}

export function createWaitingRoom(): WaitingRoom {
  const waiters = new Map<string, Waiter>();
  const leave = (jobId: string, outcome: Outcome | undefined) => {
    const waiter = waiters.get(jobId);
    waiters.delete(jobId);
    waiter?.settle(outcome);
  };
  return {
    wait: (job, deadline) =>
      new Promise((resolve) => {
        const since = Date.now();
        const timer = setTimeout(() => leave(job.jobId, undefined), Math.max(0, deadline - since));
        const settle = (outcome: Outcome | undefined) => {
          clearTimeout(timer);
          resolve(outcome);
        };
        waiters.set(job.jobId, { job, since, settle });
      }),
    settle: leave,
    giveUp: (jobId) => leave(jobId, undefined),
    waitingSince: (since) =>
      [...waiters.values()].filter((waiter) => waiter.since < since).map(({ job }) => job),
    get size() {
      return waiters.size;
    },
  };
}
