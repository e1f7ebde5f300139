import { setImmediate as turn } from 'node:timers/promises';
import type { withTimeout } from '../../shared/runtime/retry.js';

/** Stands in for `withTimeout`: what is waited for is given up once the test has let enough time elapse. */
export function heldTimeouts() {
  const waiting = new Set<{ leftMs: number; expire(): void }>();
  const bounded: typeof withTimeout = async (ms, work, tooLate = () => new Error('no answer in time')) => {
    const { promise, reject } = Promise.withResolvers<never>();
    const wait = { leftMs: ms, expire: () => reject(tooLate()) };
    waiting.add(wait);
    return Promise.race([work, promise]).finally(() => waiting.delete(wait));
  };
  return {
    withTimeout: bounded,
    /** Once something is waited for, lets so many milliseconds elapse. */
    elapse: async (ms: number): Promise<void> => {
      while (waiting.size === 0) await turn();
      for (const wait of waiting) {
        wait.leftMs -= ms;
        if (wait.leftMs <= 0) wait.expire();
      }
    },
  };
}
