import type { Log } from '../runtime/log.js';
import { type RetryOptions, retry } from '../runtime/retry.js';
import type { QueueStore } from './queue-store.js';

interface ReadinessDeps extends Pick<RetryOptions, 'maxPauseMs' | 'maxTries'> {
  /** The first pause between two tries, in milliseconds. */
  pauseMs?: number;
  store: Pick<QueueStore, 'whenReady'>;
  /** Ends the waiting and the retrying. */
  signal: AbortSignal;
  log: Log;
}

const defaultPauseMs = 250;

/**
 * Does what needs the store once that is ready, and again when it fails: a store can become unavailable meanwhile, or
 * answer and still refuse. Logs each reason once. Throws the last error of the work, or the signal's reason when that
 * aborts before the first try.
 */
export function whenReady<T>(
  work: () => Promise<T>,
  { store, log, ...options }: ReadinessDeps,
): Promise<Awaited<T>> {
  const logged = new Set<string>();
  let lastError: unknown;
  const workOnReadyStore = async () => {
    if (!(await store.whenReady(options.signal))) throw lastError ?? options.signal.reason;
    return work();
  };
  const onFailure = (error: unknown) => {
    lastError = error;
    if (!logged.has(String(error))) log.warn({ err: error }, 'the queue store refused, trying again');
    logged.add(String(error));
  };
  return retry(workOnReadyStore, { pauseMs: defaultPauseMs, ...options, onFailure });
}
