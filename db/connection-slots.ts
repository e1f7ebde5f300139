import { DatabaseSilence } from './silence.js';

/** A bounded wait for one of a number of connections; postgres.js itself lets queries wait without end. */
export interface ConnectionSlots {
  /**
   * Waits its turn for a slot, at most so long in milliseconds, and gives what frees it, to be called once. Throws
   * `DatabaseSilence` when none became free.
   */
  take(waitMs: number): Promise<() => void>;
}

/** Makes slots for so many connections; who has waited longest is served first. */
export function createConnectionSlots(count: number): ConnectionSlots {
  const waiting = new Set<() => void>();
  let free = count;

  const release = () => {
    const [next] = waiting;
    if (next === undefined) free += 1;
    else next();
  };
  // Whoever leaves the line does so at once: a slot handed to somebody who is gone would be lost.
  const turn = (waitMs: number) => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const leave = (done: () => void) => {
      clearTimeout(timer);
      waiting.delete(next);
      done();
    };
    const next = () => leave(resolve);
    const timer = setTimeout(() => leave(() => reject(new DatabaseSilence('NO_FREE_CONNECTION'))), waitMs);
    waiting.add(next);
    return promise;
  };
  return {
    take: async (waitMs) => {
      if (free === 0) await turn(waitMs);
      else free -= 1;
      return release;
    },
  };
}
