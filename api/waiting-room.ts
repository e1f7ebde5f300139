import type { ProviderId } from '../shared/contract.js';
import type { Outcome } from '../shared/outcome.js';

/** A job somebody waits for. */
export interface AwaitedJob {
  readonly jobId: string;
  readonly provider: ProviderId;
}

/** Where requests wait for the outcome of their job; each waiter is settled exactly once. */
export interface WaitingRoom {
  /**
   * Resolves with the outcome, or with `undefined` when the deadline (milliseconds since the epoch) passes first.
   * A job can be waited for once.
   */
  wait(job: AwaitedJob, deadline: number): Promise<Outcome | undefined>;
  /** Settles the waiter of this job; does nothing for a job nobody waits for. */
  settle(jobId: string, outcome: Outcome): void;
  /** Settles everyone who waits. */
  settleAll(outcome: Outcome): void;
  /** Stops waiting, as if the deadline had passed. */
  giveUp(jobId: string): void;
  /** The jobs somebody waits for; with `since` (milliseconds since the epoch) only those waited for since before it. */
  waiting(options?: { since?: number }): AwaitedJob[];
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
      new Promise((resolve, reject) => {
        if (waiters.has(job.jobId)) return reject(new TypeError('somebody waits for this job already'));
        const since = Date.now();
        const timer = setTimeout(() => leave(job.jobId, undefined), Math.max(0, deadline - since));
        const settle = (outcome: Outcome | undefined) => {
          clearTimeout(timer);
          resolve(outcome);
        };
        waiters.set(job.jobId, { job, since, settle });
      }),
    settle: leave,
    settleAll: (outcome) => {
      for (const jobId of [...waiters.keys()]) leave(jobId, outcome);
    },
    giveUp: (jobId) => leave(jobId, undefined),
    waiting: ({ since = Number.POSITIVE_INFINITY } = {}) =>
      [...waiters.values()].filter((waiter) => waiter.since < since).map(({ job }) => job),
  };
}
