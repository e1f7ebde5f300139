import { setTimeout as delay } from 'node:timers/promises';
import type { QueueStore } from '../../shared/queue/queue-store.js';
import type { Log } from '../../shared/runtime/log.js';

interface PersistenceDeps {
  store: Pick<QueueStore, 'whenReady'>;
  /** Ends the trying. */
  signal: AbortSignal;
  log: Log;
}

const pauseMs = 250;
/** A store that is ready whenever it is asked and still refuses so often is not what is wrong. */
const maxTries = 20;

/** Does what needs the store, and again when that failed because the store went away; throws what it throws at last. */
export async function retryWhileDown<T>(
  work: () => Promise<T>,
  { store, signal, log }: PersistenceDeps,
): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await work();
    } catch (error) {
      if (tries === maxTries || signal.aborted) throw error;
      log.warn({ err: error }, 'the store went away while it was being linked');
      await delay(pauseMs, undefined, { signal }).catch(() => undefined);
      if (!(await store.whenReady(signal))) throw error;
    }
  }
}
