import type { Worker } from 'bullmq';

/** What BullMQ keeps to itself of how a worker takes jobs; a test fails when it is no longer so. */
interface MainLoop {
  /** Jobs that have been taken, and those that run. */
  mainLoopQueue: { numQueued(): number } | null;
  /** Asked before each fetch. */
  isRateLimited(): boolean;
}

/**
 * Has a worker start each job before it fetches another. BullMQ fetches one after the other as many as it may run, and
 * then starts them all: behind a burst the first job waits for the last one's fetch, holding a lock that nobody renews
 * (with thousands it ran out), and the calls of all begin in one turn of the event loop.
 */
export function startWhenFetched(worker: Worker): Worker {
  const loop = worker as unknown as MainLoop;
  const isRateLimited = loop.isRateLimited.bind(worker);
  loop.isRateLimited = () => (loop.mainLoopQueue?.numQueued() ?? 0) > 0 || isRateLimited();
  return worker;
}
