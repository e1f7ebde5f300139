/*
 * Patch of bullmq 6.7.0: the main loop of `Worker`.
 * Gives: correctness. A burst of jobs starts as it is fetched, with locks that are renewed; a paused worker takes no
 * job.
 * Until: BullMQ starts a job when it is fetched, and looks at the pause after its blocking read.
 */
import type { Worker } from 'bullmq';

/** Private parts of BullMQ's worker; tests fail when they change. */
interface MainLoop {
  /**
   * The fetches and the running jobs that the main loop waits for, also when it is paused or closing. A job with which
   * one of them resolves is started: the one that was fetched, or the successor of the one that has ended.
   */
  mainLoopQueue: { add(fetch: Promise<unknown>): void; numTotal(): number; numQueued(): number } | null;
  /** Asked before each fetch. */
  isRateLimited(): boolean;
  /** Takes a job from the queue, if there is one. */
  moveToActive(...fetch: unknown[]): Promise<unknown>;
}

/** A rate-limited worker asks again after so many milliseconds at the latest: the rate may have been raised. */
export const maximumRateLimitDelay = 1000;

export const mainLoopOf = (worker: Worker): MainLoop => worker as unknown as MainLoop;

/**
 * Makes a worker start what it has fetched before it fetches more. BullMQ fetches as many jobs as it may run, and in a
 * burst the first one would wait for the last fetch, with a lock that is not renewed (decision 33).
 */
export function startWhenFetched(worker: Worker): Worker {
  const loop = mainLoopOf(worker);
  const isRateLimited = loop.isRateLimited.bind(worker);
  loop.isRateLimited = () => (loop.mainLoopQueue?.numQueued() ?? 0) > 0 || isRateLimited();
  return worker;
}

/** Makes a worker take nothing while it is paused. One that waited for a job then would take the next one. */
export function takeNothingWhilePaused(worker: Worker): Worker {
  const loop = mainLoopOf(worker);
  const moveToActive = loop.moveToActive.bind(worker);
  loop.moveToActive = async (...fetch) => (worker.isPaused() ? undefined : moveToActive(...fetch));
  return worker;
}
