import type { Worker } from 'bullmq';

/** Private parts of BullMQ's worker; tests fail when they change. */
interface MainLoop {
  /**
   * The fetches and the running jobs that the main loop waits for, also when it is paused or closing. A job with which one of them resolves is
   * started: the one that was fetched, or the successor of the one that has ended.
   */
  mainLoopQueue: { add(fetch: Promise<unknown>): void; numTotal(): number; numQueued(): number } | null;
  /** Asked before each fetch. */
  isRateLimited(): boolean;
}

export const mainLoopOf = (worker: Worker): MainLoop => worker as unknown as MainLoop;

/**
 * Makes a worker start what it has fetched before it fetches more. BullMQ fetches as many jobs as it may run and then starts them
 * all: in a burst the first job waits for the last fetch, with a lock that nobody renews (with thousands of jobs it expired),
 * and all calls begin in one turn of the event loop.
 */
export function startWhenFetched(worker: Worker): Worker {
  const loop = mainLoopOf(worker);
  const isRateLimited = loop.isRateLimited.bind(worker);
  loop.isRateLimited = () => (loop.mainLoopQueue?.numQueued() ?? 0) > 0 || isRateLimited();
  return worker;
}
