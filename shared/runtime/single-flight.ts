import { setTimeout as delayFor } from 'node:timers/promises';

interface SingleFlightOptions {
  apartMs: number;
  /** Waits for so many milliseconds. */
  delay?: (ms: number) => Promise<unknown>;
}

/**
 * Shares one run of the work among all callers that ask during it. Runs begin at least `apartMs` milliseconds apart,
 * and a caller in between waits for the next, so the load does not grow with the number of callers.
 */
export function singleFlight<T>(
  work: () => Promise<T>,
  { apartMs, delay = delayFor }: SingleFlightOptions,
): () => Promise<T> {
  let underWay: Promise<T> | undefined;
  let notBefore = 0;
  const run = async (): Promise<T> => {
    const earlyMs = notBefore - performance.now();
    if (earlyMs > 0) await delay(earlyMs);
    notBefore = performance.now() + apartMs;
    return work();
  };
  return () => {
    underWay ??= run().finally(() => {
      underWay = undefined;
    });
    return underWay;
  };
}
