import { parseConfig } from '../../shared/config/config.js';
import { type PoolHeartbeat, queueName } from '../../shared/protocol/messages.js';
import { followProcesses } from '../../shared/queue/channels.js';
import type { QueueStore } from '../../shared/queue/queue-store.js';
import { openRelay } from '../../shared/queue/relay.js';
import { openQueueStore } from '../../shared/queue/stores/open.js';
import { patienceMs } from './patience.js';
import { createRecordingLog } from './recording-log.js';

/** Opens the queue's store that these variables name, beside the programs that use it. */
export async function openStoreOf(stores: Record<string, string>): Promise<QueueStore> {
  const store = openQueueStore(parseConfig(stores, 'migrate'), createRecordingLog().log);
  await store.whenReady(AbortSignal.timeout(patienceMs));
  return store;
}

/** Opens the store, the queue of OpenAI in it, and listens to the heartbeats of OpenAI's pools. */
export async function hearPools(stores: Record<string, string>) {
  const store = await openStoreOf(stores);
  const relay = await openRelay(store, { name: 'test', log: createRecordingLog().log });
  const queue = store.createQueue(queueName('openai'));
  const last = new Map<string, PoolHeartbeat>();
  await followProcesses(relay, {
    add: (heartbeat) => {
      if (heartbeat.provider === 'openai') last.set(heartbeat.worker, heartbeat);
    },
    addChats: () => undefined,
  });
  return {
    store,
    queue,
    relay,
    /** The last heartbeat of each worker. */
    pools: () => [...last.values()],
    close: async () => {
      await queue.close();
      await relay.close();
      await store.close();
    },
  };
}
