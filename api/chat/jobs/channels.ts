import type { Queue } from 'bullmq';
import { type ProviderId, providerIds } from '../../../shared/contract.js';
import { type ChatJobPayload, queueName } from '../../../shared/protocol/messages.js';
import type { QueueStore } from '../../../shared/queue/queue-store.js';
import { openRelay, type Relay } from '../../../shared/queue/relay.js';
import type { Log } from '../../../shared/runtime/log.js';
import { withTimeout } from '../../../shared/runtime/with-timeout.js';

/** The queues of all providers, and the messages between processes. */
export interface Channels {
  readonly queues: ReadonlyMap<ProviderId, Queue<ChatJobPayload>>;
  readonly relay: Relay;
}

/** How long to wait for a store that is down already. */
const closeTimeoutMs = 1000;

/** Opens them; the store must be ready. Throws what it throws, and leaves nothing open then. */
export async function openChannels({ store, log }: { store: QueueStore; log: Log }): Promise<Channels> {
  const queues = new Map<ProviderId, Queue>(providerIds.map((id) => [id, store.createQueue(queueName(id))]));
  try {
    // In PostgreSQL a queue whose first connection fails never recovers.
    await Promise.all([...queues.values()].map((queue) => queue.waitUntilReady()));
    return { queues, relay: await openRelay(store, { name: 'api', log }) };
  } catch (error) {
    await withTimeout(closeTimeoutMs, closeAll(queues)).catch(() => undefined);
    throw error;
  }
}

/** Closes the queues. */
export async function closeAll(queues: Channels['queues']): Promise<void> {
  await Promise.all([...queues.values()].map((queue) => queue.close()));
}
