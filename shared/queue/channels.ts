import type { Queue } from 'bullmq';
import { type ProviderId, providerIds } from '../contracts/contract.js';
import {
  type ChatJobPayload,
  type PoolHeartbeat,
  processHeartbeatSchema,
  queueName,
  topics,
} from '../protocol/messages.js';
import type { EndedChats } from '../protocol/stored-chat.js';
import type { Log } from '../runtime/log.js';
import { closedInTime } from '../runtime/retry.js';
import type { QueueStore } from './queue-store.js';
import { openRelay, type Relay } from './relay.js';

/** The queue of each provider. */
export type Queues = ReadonlyMap<ProviderId, Queue<ChatJobPayload>>;

/** The queues of all providers, and the messages between processes. */
export interface Channels {
  readonly queues: Queues;
  readonly relay: Relay;
}

/** Opens the queues; they connect on first use. */
export const openQueues = (store: Pick<QueueStore, 'createQueue'>): Queues =>
  new Map(providerIds.map((id) => [id, store.createQueue(queueName(id))]));

/** The queue of this provider; throws when it is none of them. */
export function queueOf(queues: Queues, id: ProviderId): Queue<ChatJobPayload> {
  const queue = queues.get(id);
  if (queue === undefined) throw new TypeError('no such queue');
  return queue;
}

/** Closes the queues; those of a store that is down after a second. */
export async function closeQueues(queues: Queues): Promise<void> {
  await closedInTime(Promise.all([...queues.values()].map((queue) => queue.close())));
}

/** Hands over the heartbeats of every pool, and how the chats of each API process ended. */
export const followProcesses = (
  relay: Pick<Relay, 'follow'>,
  listener: {
    add(heartbeat: PoolHeartbeat): void;
    addChats(process: string, chats: readonly EndedChats[]): void;
  },
): Promise<void> =>
  relay.follow(topics.processes, processHeartbeatSchema, ({ worker, pools, chats }) => {
    for (const heartbeat of pools) listener.add(heartbeat);
    if (chats) listener.addChats(worker, chats);
  });

/** Closes relay and queues. */
export async function closeChannels({ queues, relay }: Channels): Promise<void> {
  await relay.close();
  await closeQueues(queues);
}

/** Opens queues and relay, under this name; the store must be ready. When it throws, nothing is left open. */
export async function openChannels(
  store: QueueStore,
  { name, log }: { name: string; log: Log },
): Promise<Channels> {
  const queues = openQueues(store);
  try {
    // In PostgreSQL a queue whose first connection fails never recovers.
    await Promise.all([...queues.values()].map((queue) => queue.waitUntilReady()));
    return { queues, relay: await openRelay(store, { name, log }) };
  } catch (error) {
    await closeQueues(queues);
    throw error;
  }
}
