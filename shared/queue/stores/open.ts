import { setTimeout as delay } from 'node:timers/promises';
import type { Config } from '../../config/config.js';
import type { Log } from '../../runtime/log.js';
import { singleFlight } from '../../runtime/single-flight.js';
import { withTimeout } from '../../runtime/with-timeout.js';
import { Misconfiguration, type QueueStore, reasonOf, type StoreParts } from '../queue-store.js';
import { StoreClock } from './clock-skew.js';
import { migratePostgresStore, openPostgresStore } from './postgres.js';
import { openRedisStore } from './redis.js';
import { startWhenFetched } from './start-when-fetched.js';
import { watchStore } from './store-watch.js';

/**
 * Opens the store that the configuration names. Never throws for an unreachable one: `check` tells. `now` is this
 * machine's clock, in milliseconds since the epoch.
 */
export function openQueueStore(config: Config, log: Log, now: () => number = Date.now): QueueStore {
  const clock = new StoreClock(now);
  const parts = openParts(config, log, clock);
  const look = async () => {
    const defect = await withTimeout(checkTimeoutMs, parts.findDefect());
    if (defect !== undefined) throw new Misconfiguration(defect);
  };
  const check = singleFlight(look, { apartMs: checksApartMs });
  const closing = new AbortController();
  let watching: Promise<void> | undefined;
  return {
    ...parts,
    now: clock.now,
    check,
    whenReady: async (signal) => {
      const isReady = await until(check, signal, watching ? undefined : log);
      if (isReady) watching ??= watchStore({ check, log, signal: closing.signal });
      return isReady;
    },
    close: async () => {
      closing.abort();
      await parts.close();
    },
    createQueue: (name) => logged(parts.createQueue(name), log),
    createWorker: (...settings) => logged(startWhenFetched(parts.createWorker(...settings)), log),
    createRelay: (options) => logged(parts.createRelay(options), log),
  };
}

/** Brings the store's schema in PostgreSQL up to date; does nothing for Redis, which has none. */
export async function migrateQueueStore(config: Config): Promise<void> {
  if (config.REDIS_URL !== undefined || config.DATABASE_URL === undefined) return;
  await migratePostgresStore(config.DATABASE_URL);
}

const checkTimeoutMs = 2500;
/** Anybody may ask for it, as often as they like. */
const checksApartMs = 50;
const checkIntervalMs = 250;

function openParts(config: Config, log: Log, clock: StoreClock): StoreParts {
  if (config.REDIS_URL !== undefined) return openRedisStore(config.REDIS_URL, log, clock);
  if (config.DATABASE_URL !== undefined) return openPostgresStore(config.DATABASE_URL, log, clock);
  throw new TypeError('neither REDIS_URL nor DATABASE_URL is set');
}

/** BullMQ reports connection trouble as events; unheard, they would end the process. */
function logged<T extends { on(event: 'error', listener: (error: Error) => void): unknown }>(
  part: T,
  log: Log,
): T {
  part.on('error', (error) => log.debug({ err: error }, 'queue store'));
  return part;
}

/** Logs why it waits, once for every reason: a wrong password looks like an outage otherwise. */
async function until(check: () => Promise<void>, signal: AbortSignal, log?: Log): Promise<boolean> {
  const told = new Set<string>();
  while (!signal.aborted) {
    try {
      await check();
      return true;
    } catch (error) {
      const reason = reasonOf(error);
      if (!told.has(reason)) log?.warn({ reason }, 'waiting for the queue store');
      told.add(reason);
      await delay(checkIntervalMs, undefined, { signal }).catch(() => undefined);
    }
  }
  return false;
}
