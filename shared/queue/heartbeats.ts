import {
  type PoolHeartbeat,
  poolHeartbeatSchema,
  processHeartbeatSchema,
  topics,
} from '../protocol/messages.js';
import type { Relay } from './relay.js';

/** Calls the listener with the heartbeats of all pools, whether they come one by one or as those of a process. */
export async function subscribeToPools(
  relay: Pick<Relay, 'subscribe' | 'receive'>,
  listener: (heartbeat: PoolHeartbeat) => void,
): Promise<void> {
  await relay.subscribe(topics.allPools, poolHeartbeatSchema, listener);
  await relay.receive(topics.processes, processHeartbeatSchema, ({ pools }) => {
    for (const heartbeat of pools) listener(heartbeat);
  });
}
