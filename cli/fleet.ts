import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { Database } from '../db/database/client.js';
import type { Config, Environment } from '../shared/config/config.js';
import type { ProviderId } from '../shared/contracts/contract.js';
import { FleetState } from '../shared/fleet/fleet-state.js';
import { Heartbeats } from '../shared/fleet/heartbeats.js';
import { type PoolHeartbeat, queueName, topics } from '../shared/protocol/messages.js';
import {
  type Channels,
  closeChannels,
  followProcesses,
  openChannels,
  type Queues,
  queueOf,
} from '../shared/queue/channels.js';
import { type QueueStore, whenReady } from '../shared/queue/queue-store.js';
import { openRelay } from '../shared/queue/relay.js';
import { type SettingsChannel, syncLimits } from '../shared/queue/settings-records.js';
import { openQueueStore } from '../shared/queue/stores/open.js';
import type { Log } from '../shared/runtime/log.js';
import { StartupError } from '../shared/runtime/program.js';
import { closedInTime, retry, withTimeout } from '../shared/runtime/retry.js';
import { findDatabase, patienceMs, silentLog, withDatabase } from './database.js';

/** How long a command waits. */
export interface ListenTimes {
  /** For the workers' heartbeats, in milliseconds. */
  listenMs?: number;
  /** For a store that does not answer, in milliseconds. */
  reachMs?: number | undefined;
}

/** Opens the queue's store, to hear the fleet without an API process. Throws `StartupError` without a store. */
export function openFleet(config: Config, { reachMs = patienceMs }: Pick<ListenTimes, 'reachMs'> = {}) {
  const log = silentLog();
  const url = config.REDIS_URL === undefined ? { DATABASE_URL: findDatabase(config) } : {};
  const store = openQueueStore({ ...config, ...url }, log);
  const closing = new AbortController();
  const heartbeats = new Heartbeats();
  let channels: Channels | undefined;
  let queues: Queues | undefined;
  const closeChannelsSoon = async () => {
    if (channels) await closedInTime(closeChannels(channels));
  };
  const open = async () => {
    // An earlier try may have left its channels open.
    await closeChannelsSoon();
    channels = await openChannels(store, { name: 'quillgate', log });
    await followProcesses(channels.relay, heartbeats);
    queues = channels.queues;
  };
  const listening = whenReady(open, { store, log, signal: closing.signal });
  listening.catch(() => undefined);
  const source = {
    heartbeats,
    get isConnected() {
      return queues !== undefined;
    },
    measure: async (id: ProviderId) => {
      if (queues === undefined) throw new TypeError('not connected yet');
      return store.measure(queueOf(queues, id));
    },
  };
  return {
    state: new FleetState({ store, source }),
    /** Listens to the workers' heartbeats for so many milliseconds, until the signal, or until the store fails. */
    listen: async (ms: number, signal = closing.signal): Promise<void> => {
      const stopped = once(signal, 'abort').then(() => false);
      const isListening = await withTimeout(
        reachMs,
        Promise.race([listening.then(() => true), stopped]),
      ).catch(() => false);
      if (isListening) await delay(ms, undefined, { signal }).catch(() => undefined);
    },
    /** The last heartbeats that have come so far of the provider's workers; each process sends one a second. */
    heartbeatsOf: (provider: ProviderId): readonly PoolHeartbeat[] => heartbeats.of(provider) ?? [],
    close: async () => {
      closing.abort();
      await closeChannelsSoon();
      await closedInTime(store.close());
    },
  };
}

/** Gives the result of `read` after listening. Throws `StartupError` without a store. */
export async function hearFleet<T>(
  config: Config,
  { listenMs, ...times }: ListenTimes & { listenMs: number },
  read: (open: ReturnType<typeof openFleet>) => T | Promise<T>,
): Promise<T> {
  const open = openFleet(config, times);
  try {
    await open.listen(listenMs);
    return await read(open);
  } finally {
    await open.close();
  }
}

/** Opens the database and the queue's store for one command, as `withDatabase` does. */
export function withSettings<T>(
  environment: Environment,
  command: (stores: { database: Database; channel: SettingsChannel; config: Config }) => Promise<T>,
): Promise<T> {
  return withDatabase(environment, async (database, config) => {
    const log = silentLog();
    const store = openQueueStore({ ...config, DATABASE_URL: findDatabase(config) }, log);
    try {
      if (!(await store.whenReady(AbortSignal.timeout(patienceMs))))
        throw new StartupError("The queue's store cannot be reached; nothing was changed.");
      return await command({ database, config, channel: channelOf(store, log) });
    } finally {
      await store.close();
    }
  });
}

/** Closed again at once: a command makes one change. */
function channelOf(store: QueueStore, log: Log): SettingsChannel {
  return {
    records: {
      ...store.records,
      // A store that is busy may answer none in its time for a request; a person would only ask again.
      readAll: (keys) => retry(() => store.records.readAll(keys), { pauseMs: 100, maxMs: patienceMs }),
    },
    syncLimits: async (id) => {
      const queue = store.createQueue(queueName(id));
      try {
        await queue.waitUntilReady();
        await syncLimits(store, queue, id);
      } finally {
        await queue.close();
      }
    },
    publish: async (record) => {
      const relay = await openRelay(store, { name: `cli-${randomUUID().slice(0, 8)}`, log });
      try {
        await relay.publish(topics.settings(record.provider), record);
      } finally {
        await relay.close();
      }
    },
  };
}
