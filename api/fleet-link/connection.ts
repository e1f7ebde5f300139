import type { ProviderId } from '../../shared/contracts/contract.js';
import type { Heartbeats } from '../../shared/fleet/heartbeats.js';
import type { LivePools } from '../../shared/fleet/live-pools.js';
import type { ApiInstruments } from '../../shared/metrics/instruments.js';
import { deltasSchema } from '../../shared/protocol/deltas.js';
import { type ResultMessage, resultMessageSchema, topics } from '../../shared/protocol/messages.js';
import {
  type Channels,
  closeChannels,
  followProcesses,
  openChannels,
  queueOf,
} from '../../shared/queue/channels.js';
import type { QueueStore } from '../../shared/queue/queue-store.js';
import { type SettingsChannel, syncLimits } from '../../shared/queue/settings-records.js';
import type { Log } from '../../shared/runtime/log.js';
import type { withTimeout } from '../../shared/runtime/with-timeout.js';
import { Cancellation } from './cancellation.js';
import type { ChatReceiver } from './chat-receiver.js';
import { DeadQueues } from './dead-queues.js';
import { JobRecords } from './job-records.js';
import { ResultPoller } from './result-poller.js';

export interface LinkDeps {
  store: QueueStore;
  metrics: Pick<ApiInstruments['metrics'], 'cancels'>;
  log: Log;
  /** Bounds how long the store may take to answer. */
  withTimeout?: typeof withTimeout;
}

/** The parts of a link whose store was reached. */
export interface Connection extends Channels {
  readonly chats: ChatReceiver;
  readonly jobRecords: JobRecords;
  readonly poller: ResultPoller;
  readonly cancellation: Cancellation;
  readonly settingsChannel: SettingsChannel;
}

interface ConnectionDeps extends Required<LinkDeps> {
  chats: ChatReceiver;
  heartbeats: Heartbeats;
  pools: LivePools;
  /** Called with each message about jobs that have ended. */
  onResults: (message: ResultMessage) => void;
}

/** Opens the queues and the relay; the store must be ready. Throws the store's errors; leaves nothing open then. */
export async function openConnection(deps: ConnectionDeps): Promise<Connection> {
  const { store, heartbeats, pools, chats, onResults, log } = deps;
  const channels = await openChannels(store, { name: 'api', log });
  const { queues, relay } = channels;
  heartbeats.begin();
  try {
    await followProcesses(relay, heartbeats);
    await pools.settings.follow(relay);
    // To this name workers send the results of the jobs that are added here, as long as the relay knows this process.
    await relay.receive(topics.reply(relay.nodeId), resultMessageSchema, onResults);
    await relay.subscribe(topics.storedResult, resultMessageSchema, onResults);
    await relay.receive(topics.deltas(relay.nodeId), deltasSchema, ({ deltas }) => {
      for (const delta of deltas) chats.onDelta(delta);
    });
  } catch (error) {
    await closeChannels(channels);
    throw error;
  }
  const parts = { ...deps, relay, queueOf: (id: ProviderId) => queueOf(queues, id) };
  const jobRecords = new JobRecords(parts);
  const poller = new ResultPoller({ ...parts, jobRecords, deadQueues: new DeadQueues(parts) });
  void poller.start();
  const settingsChannel: SettingsChannel = {
    records: store.records,
    syncLimits: (id) => syncLimits(store, queueOf(queues, id), id),
    publish: (record) => relay.publish(topics.settings(record.provider), record),
  };
  return { ...channels, chats, jobRecords, poller, cancellation: new Cancellation(parts), settingsChannel };
}
