import { setTimeout as delay } from 'node:timers/promises';
import type { Config } from '../../config/config.js';
import type { Log } from '../../runtime/log.js';
import { retry, singleFlight, storeTimeoutMs, withTimeout } from '../../runtime/retry.js';
import { startWhenFetched, takeNothingWhilePaused } from '../patches/main-loop.js';
import { Misconfiguration, type QueueStore, reasonOf, type StoreParts } from '../queue-store.js';
import { StoreClock } from './clock-skew.js';
import { migratePostgresStore, openPostgresStore } from './postgres.js';
import { openRedisStore } from './redis.js';

/** Opens the store that the configuration names; `check` says if it is unreachable. `now` is this machine's clock. */
export function openQueueStore(config: Config, log: Log, now: () => number = Date.now): QueueStore {
  const clock = new StoreClock(now);
  const parts = openParts(config, log, clock);
  const findDefect = async () => {
    const defect = await withTimeout(storeTimeoutMs, parts.findDefect());
    if (defect !== undefined) throw new Misconfiguration(defect);
  };
  const check = singleFlight(findDefect, { apartMs: checksApartMs });
  const closing = new AbortController();
  let watching: Promise<void> | undefined;
  return {
    ...parts,
    now: clock.now,
    check,
    whenReady: async (signal) => {
      const isReady = await untilReady(check, signal, watching ? undefined : log);
      if (isReady) watching ??= watchStore(check, log, closing.signal);
      return isReady;
    },
    close: async () => {
      closing.abort();
      await parts.close();
    },
    createQueue: (name) => logged(parts.createQueue(name), log),
    createWorker: (...settings) =>
      logged(takeNothingWhilePaused(startWhenFetched(parts.createWorker(...settings))), log),
    createRelay: (options) => logged(parts.createRelay(options), log),
  };
}

/** Brings the store's schema in PostgreSQL up to date; does nothing for Redis, which has none. */
export async function migrateQueueStore(config: Config): Promise<void> {
  if (config.REDIS_URL !== undefined || config.DATABASE_URL === undefined) return;
  await migratePostgresStore(config.DATABASE_URL);
}

/** Strangers may ask for a check, as often as they like. */
const checksApartMs = 50;
const checkIntervalMs = 250;

function openParts(config: Config, log: Log, clock: StoreClock): StoreParts {
  if (config.REDIS_URL !== undefined) return openRedisStore(config.REDIS_URL, log, clock);
  if (config.DATABASE_URL !== undefined) return openPostgresStore(config.DATABASE_URL, log, clock);
  throw new TypeError('neither REDIS_URL nor DATABASE_URL is set');
}

/** BullMQ emits connection errors as events; without a listener they would end the process. */
function logged<T extends { on(event: 'error', listener: (error: Error) => void): unknown }>(
  part: T,
  log: Log,
): T {
  part.on('error', (error) => log.debug({ err: error }, 'queue store'));
  return part;
}

/** Logs each reason for waiting once: a wrong password looks like an outage. False when the signal aborts first. */
async function untilReady(check: () => Promise<void>, signal: AbortSignal, log?: Log): Promise<boolean> {
  const logged = new Set<string>();
  const onFailure = (error: unknown) => {
    const reason = reasonOf(error);
    if (!logged.has(reason)) log?.warn({ reason }, 'waiting for the queue store');
    logged.add(reason);
  };
  if (signal.aborted) return false;
  return retry(check, { pauseMs: checkIntervalMs, signal, onFailure }).then(
    () => true,
    () => false,
  );
}

/** Also detects the loss of an idle connection. */
const intervalMs = 1000;
const intervalWhileUnavailableMs = 250;
/** Connections are replaced in less time, which is not worth a warning. */
const noticeableMs = 1000;

/** Logs one warning when the store becomes unavailable and one when it is back, until the signal aborts. */
async function watchStore(check: () => Promise<void>, log: Log, signal: AbortSignal): Promise<void> {
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
