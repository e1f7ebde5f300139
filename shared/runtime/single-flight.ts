import { setTimeout as delay } from 'node:timers/promises';

/**
 * Work that all who ask for it while it is under way share. It begins again no sooner than `apartMs` milliseconds after it last
 * began, and whoever asks earlier waits for that: nobody is given an older result, and however many ask, the work is bounded.
 */
export function singleFlight<T>(work: () => Promise<T>, { apartMs }: { apartMs: number }): () => Promise<T> {
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
