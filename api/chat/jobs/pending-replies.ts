import type { ProviderId } from '../../../shared/contract.js';
import { jobRecordTtlMs } from '../../../shared/protocol/messages.js';
import type { Outcome } from '../../../shared/protocol/outcome.js';

/** A job somebody waits for. */
export interface PendingJob {
  readonly jobId: string;
  readonly provider: ProviderId;
  /** Whether it belongs to a stored chat, whose outcome has a record of its own. */
  readonly isStored?: boolean;
}

/** One caller's wait for a job. */
export interface Wait {
  /** The outcome, or `undefined` when the deadline passes first, or who waits leaves. */
  readonly outcome: Promise<Outcome | undefined>;
  /** Stops waiting, as if the deadline had passed. */
  leave(): void;
  /** Has this done, once at most, when the store does not know the job; to be said when its add has been answered. */
  onLost(reEnqueue: () => void): void;
}

/** Where requests wait for the outcome of their job; several may wait for one, and each is settled exactly once. */
export interface PendingReplies {
  /**
   * Waits until the deadline, in milliseconds since the epoch, at the latest. A patient wait is one that no connection is
   * held for: should its telling be lost, it is enough to find that out a little later.
   */
  wait(job: PendingJob, deadline: number, options?: { isBackground: boolean }): Wait;
  /** Settles everyone who waits for this job. */
  settle(jobId: string, outcome: Outcome): void;
  /** Settles everyone who waits. */
  settleAll(outcome: Outcome): void;
  /** Notes that the store knew this job, in milliseconds since the epoch. */
  seen(jobId: string, at: number): void;
  /**
   * Tells those who wait for this job that the store does not know it, and whether any of them puts it back: not when it was
   * last known so long ago that it may have ended since, and its record with it.
   */
  vanished(jobId: string): boolean;
  /** The job of this id, if somebody waits for it. */
  find(jobId: string): PendingJob | undefined;
  /**
   * The jobs somebody waits for; with `since` (milliseconds since the epoch) only those waited for since before it, and with
   * `turn`, which is one more at each look, of those with patient waits alone the few whose turn it is.
   */
  waiting(options?: { since?: number; turn?: number }): PendingJob[];
}

interface Waiter {
  readonly job: PendingJob;
  readonly since: number;
  /** In which of `backgroundSlots` it is looked at; a wait that is not patient is in all of them. */
  readonly turn?: number | undefined;
  readonly settle: (outcome: Outcome | undefined) => void;
  reEnqueue?: (() => void) | undefined;
  /** When the store knew the job, in milliseconds since the epoch. */
  lastSeenAt?: number;
}

/** The record of a job that has ended is still there after this time: a little less than it is kept. */
const recordAliveMs = jobRecordTtlMs - 10_000;
/** A patient wait is looked at once in this many looks; each look has its share of them, so that there is no burst. */
const backgroundSlots = 15;

/** `now` is the clock of the deadlines, in milliseconds since the epoch. */
export function createPendingReplies(now: () => number = Date.now): PendingReplies {
  const byJob = new Map<string, Set<Waiter>>();
  let backgroundWaits = 0;
  const everyone = () => [...byJob.values()].flatMap((waiters) => [...waiters]);
  const settle = (jobId: string, outcome: Outcome) => {
    for (const waiter of byJob.get(jobId) ?? []) waiter.settle(outcome);
  };
  const enter = (waiter: Waiter) => {
    const { jobId } = waiter.job;
    byJob.set(jobId, (byJob.get(jobId) ?? new Set()).add(waiter));
  };
  const forget = (waiter: Waiter) => {
    const { jobId } = waiter.job;
    const waiters = byJob.get(jobId);
    waiters?.delete(waiter);
    if (waiters?.size === 0) byJob.delete(jobId);
  };
  return {
    wait: (job, deadline, { isBackground } = { isBackground: false }) => {
      const { promise, resolve } = Promise.withResolvers<Outcome | undefined>();
      const since = now();
      const leave = () => waiter.settle(undefined);
      const timer = setTimeout(leave, Math.max(0, deadline - since));
      const waiter: Waiter = {
        job,
        since,
        ...(isBackground && { turn: backgroundWaits++ % backgroundSlots }),
        settle: (outcome) => {
          clearTimeout(timer);
          forget(waiter);
          resolve(outcome);
        },
      };
      enter(waiter);
      const onLost = (reEnqueue: () => void) => {
        waiter.reEnqueue = reEnqueue;
        waiter.lastSeenAt = now();
      };
      return { outcome: promise, leave, onLost };
    },
    settle,
    settleAll: (outcome) => {
      for (const jobId of [...byJob.keys()]) settle(jobId, outcome);
    },
    seen: (jobId, at) => {
      for (const waiter of byJob.get(jobId) ?? []) waiter.lastSeenAt = at;
    },
    vanished: (jobId) => {
      const since = now() - recordAliveMs;
      const ready = [...(byJob.get(jobId) ?? [])].filter(
        ({ reEnqueue, lastSeenAt = 0 }) => reEnqueue !== undefined && lastSeenAt > since,
      );
      for (const waiter of ready) {
        waiter.reEnqueue?.();
        waiter.reEnqueue = undefined;
      }
      return ready.length > 0;
    },
    find: (jobId) => {
      const [waiter] = byJob.get(jobId) ?? [];
      return waiter?.job;
    },
    waiting: ({ since = Number.POSITIVE_INFINITY, turn } = {}) => {
      const isDue = (waiter: Waiter) =>
        turn === undefined || waiter.turn === undefined || waiter.turn === turn % backgroundSlots;
      const jobs = everyone().filter((waiter) => waiter.since < since && isDue(waiter));
      return [...new Map(jobs.map(({ job }) => [job.jobId, job])).values()];
    },
  };
}
