import { setTimeout as delay } from 'node:timers/promises';
import type { Log } from '../../runtime/log.js';
import { reasonOf } from '../queue-store.js';

interface StoreWatch {
  /** See `QueueStore`. */
  check(): Promise<void>;
  log: Log;
  /** Ends the watch. */
  signal: AbortSignal;
}

/** Also detects the loss of an idle connection. */
const intervalMs = 1000;
const intervalWhileUnavailableMs = 250;
/** Connections are replaced in less time, which is not worth a warning. */
const noticeableMs = 1000;

/** Logs one warning when the store becomes unavailable and one when it is back, until the signal aborts. */
export async function watchStore({ check, log, signal }: StoreWatch): Promise<void> {
  let since: number | undefined;
  let isLogged = false;
  const pause = () =>
    delay(since === undefined ? intervalMs : intervalWhileUnavailableMs, true, { signal, ref: false });
  while (await pause().catch(() => false)) {
    const askedAt = performance.now();
    const reason = await check().then(() => undefined, reasonOf);
    if (signal.aborted) return;
    const unavailableMs = Math.round(performance.now() - (since ?? askedAt));
    if (reason === undefined) {
      if (isLogged) log.warn({ unavailableMs }, 'the queue store is available again');
      since = undefined;
      isLogged = false;
      continue;
    }
    since ??= askedAt;
    if (isLogged || unavailableMs < noticeableMs) continue;
    log.warn({ reason }, 'the queue store is unavailable');
    isLogged = true;
  }
}
