import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { Config } from '../shared/config/config.js';
import type { ProviderId } from '../shared/contracts/contract.js';
import { FleetState } from '../shared/fleet/fleet-state.js';
import { Heartbeats } from '../shared/fleet/heartbeats.js';
import type { PoolHeartbeat } from '../shared/protocol/messages.js';
import {
  type Channels,
  closeChannels,
  followProcesses,
  openChannels,
  type Queues,
  queueOf,
} from '../shared/queue/channels.js';
import { openQueueStore } from '../shared/queue/stores/open.js';
import { whenReady } from '../shared/queue/when-ready.js';
import { withTimeout } from '../shared/runtime/with-timeout.js';
import { findDatabase, patienceMs, silentLog } from './database.js';

/** A store that is down must not keep a command. */
const closingMs = 1000;

/** How long a command waits. */
export interface ListenTimes {
  /** For the workers' heartbeats, in milliseconds. */
  listenMs?: number;
  /** For a store that does not answer, in milliseconds. */
  reachMs?: number;
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
    if (channels) await withTimeout(closingMs, closeChannels(channels)).catch(() => undefined);
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
      await withTimeout(closingMs, store.close()).catch(() => undefined);
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
