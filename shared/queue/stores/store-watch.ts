import { setTimeout as delay } from 'node:timers/promises';
import type { Log } from '../../runtime/log.js';
import { reasonOf } from '../queue-store.js';

interface StoreWatch {
  /** See `QueueStore`. */
  check(): Promise<void>;
  log: Log;
  /** Ends it. */
  signal: AbortSignal;
}

/** Also what makes the loss of a connection known that nobody has used since. */
const intervalMs = 1000;
const intervalWhileUnavailableMs = 250;
/** Connections are replaced in less: of that nobody needs to hear. */
const noticeableMs = 1000;

/** Logs one warning when the store becomes unavailable and one when it is back, until the signal aborts. */
export async function watchStore({ check, log, signal }: StoreWatch): Promise<void> {
  let since: number | undefined;
  let isTold = false;
  const pause = () =>
    delay(since === undefined ? intervalMs : intervalWhileUnavailableMs, true, { signal, ref: false });
  while (await pause().catch(() => false)) {
    const askedAt = performance.now();
    const reason = await check().then(() => undefined, reasonOf);
    if (signal.aborted) return;
    const unavailableMs = Math.round(performance.now() - (since ?? askedAt));
    if (reason === undefined) {
      if (isTold) log.warn({ unavailableMs }, 'the queue store is available again');
      since = undefined;
      isTold = false;
      continue;
    }
    since ??= askedAt;
    if (isTold || unavailableMs < noticeableMs) continue;
    log.warn({ reason }, 'the queue store is unavailable');
    isTold = true;
  }
}
