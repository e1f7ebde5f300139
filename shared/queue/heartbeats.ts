import {
  type PoolHeartbeat,
  poolHeartbeatSchema,
  processHeartbeatSchema,
  topics,
} from '../protocol/messages.js';
import type { Relay } from './relay.js';

/** Calls the listener with the heartbeats of all pools: those of a process, and one by one as workers of 0.4 send them. */
export async function subscribeToPools(
  relay: Pick<Relay, 'subscribe' | 'follow'>,
  listener: (heartbeat: PoolHeartbeat) => void,
): Promise<void> {
  await relay.subscribe(topics.allPools, poolHeartbeatSchema, listener);
  await relay.follow(topics.processes, processHeartbeatSchema, ({ pools }) => {
    for (const heartbeat of pools) listener(heartbeat);
  });
}
