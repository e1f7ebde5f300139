import { setTimeout as delay } from 'node:timers/promises';
import type { QueueStore } from '../shared/queue/queue-store.js';
import type { Log } from '../shared/runtime/log.js';

interface OpeningDeps {
  store: Pick<QueueStore, 'whenReady'>;
  log: Log;
  /** Ends the trying. */
  signal: AbortSignal;
}

const firstPauseMs = 250;
const maxPauseMs = 8000;

/**
 * Opens what needs the store, once that is ready. A store can answer and still refuse it, so it is tried again after pauses that
 * double, and the log tells of each reason once. Undefined when the signal aborts first.
 */
export async function openWhenReady<T>(
  open: () => Promise<T>,
  { store, log, signal }: OpeningDeps,
): Promise<T | undefined> {
  const told = new Set<string>();
  for (let pauseMs = firstPauseMs; await store.whenReady(signal); pauseMs *= 2) {
    try {
      return await open();
    } catch (err) {
      if (!told.has(String(err))) log.warn({ err }, 'the queue could not be opened, and is tried again');
      told.add(String(err));
      await delay(Math.min(pauseMs, maxPauseMs), undefined, { signal }).catch(() => undefined);
    }
  }
  return undefined;
}
