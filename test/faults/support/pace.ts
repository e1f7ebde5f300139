import { setTimeout as delay } from 'node:timers/promises';

interface Pace {
  count: number;
  everyMs: number;
}

/** Starts something at fixed times, whether or not earlier ones have ended; gives all results. */
export async function paced<T>({ count, everyMs }: Pace, start: (n: number) => Promise<T>): Promise<T[]> {
  const startedAt = performance.now();
  const started: Promise<T>[] = [];
  for (let n = 0; n < count; n += 1) {
    started.push(start(n));
    await delay(Math.max(0, startedAt + (n + 1) * everyMs - performance.now()));
  }
  return Promise.all(started);
}
