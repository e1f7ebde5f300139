import { DatabaseTimeout } from './database-timeout.js';

/** A bounded wait for one of a number of connections; postgres.js itself lets queries wait without end. */
export interface ConnectionSlots {
  /** Waits its turn for a slot and gives what frees it, to be called once. Throws `DatabaseTimeout` for none in time. */
  take(turn: Turn): Promise<() => void>;
}

/** How to wait for a slot. */
export interface Turn {
  /** At most so long, in milliseconds. */
  waitMs: number;
  /** For what may take long and come in any number: it gets a third of the slots at most, so that others find one. */
  slow?: boolean;
}

/** Makes slots for so many connections; who has waited longest is served first. */
export function createConnectionSlots(count: number): ConnectionSlots {
  const all = createLine(count);
  const slowOnes = createLine(Math.max(1, Math.floor(count / 3)));

  const takeSlow = async (waitMs: number) => {
    const until = performance.now() + waitMs;
    const leave = await slowOnes.take(waitMs);
    try {
      const release = await all.take(until - performance.now());
      return () => {
        release();
        leave();
      };
    } catch (error) {
      leave();
      throw error;
    }
  };
  return { take: ({ waitMs, slow = false }) => (slow ? takeSlow(waitMs) : all.take(waitMs)) };
}

/** Where one waits for one of so many places. */
function createLine(count: number) {
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
    const timer = setTimeout(() => leave(() => reject(new DatabaseTimeout('NO_FREE_CONNECTION'))), waitMs);
    waiting.add(next);
    return promise;
  };
  return {
    take: async (waitMs: number): Promise<() => void> => {
      if (free === 0) await turn(waitMs);
      else free -= 1;
      return release;
    },
  };
}
