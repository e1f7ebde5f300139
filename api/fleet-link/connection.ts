import { type ProviderId, providerIds } from '../../shared/contracts/contract.js';
import type { Heartbeats } from '../../shared/fleet/heartbeats.js';
import type { LivePools } from '../../shared/fleet/live-pools.js';
import type { ApiInstruments } from '../../shared/metrics/instruments.js';
import {
  type Cancel,
  decodeRemovedUsers,
  encodeRemovedUsers,
  type ResultMessage,
  removedUsersKey,
  resultMessageSchema,
  topics,
} from '../../shared/protocol/messages.js';
import { deltasSchema } from '../../shared/protocol/parts.js';
import { writtenVersion } from '../../shared/protocol/version.js';
import {
  type Channels,
  closeChannels,
  followProcesses,
  openChannels,
  queueOf,
} from '../../shared/queue/channels.js';
import type { LedgerWriter } from '../../shared/queue/ledger-writer.js';
import type { QueueStore, RecordStore } from '../../shared/queue/queue-store.js';
import type { Relay } from '../../shared/queue/relay.js';
import { type SettingsChannel, syncLimits } from '../../shared/queue/settings-records.js';
import type { Log } from '../../shared/runtime/log.js';
import { retry, type withTimeout } from '../../shared/runtime/retry.js';
import { Cancellation } from './cancellation.js';
import type { ChatReceiver } from './chat-receiver.js';
import { DeadQueues } from './dead-queues.js';
import { JobRecords } from './job-records.js';
import { ResultPoller } from './result-poller.js';

export interface LinkDeps {
  store: QueueStore;
  metrics: Pick<ApiInstruments['metrics'], 'cancels'>;
  ledger: Pick<LedgerWriter, 'append'>;
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

interface RemovedUsersDeps {
  records: Pick<RecordStore, 'read' | 'create' | 'replace'>;
  relay: Pick<Relay, 'publish'>;
  /** Ends the attempts to write the record while the store is down. */
  signal: AbortSignal;
  log: Log;
}

/** How long the record is kept, in milliseconds: no chat takes longer. */
const recordTtlMs = 2 * 3_600_000;

/**
 * Makes the pools end the chats of removed users. A message ends those that run. A record, which workers read every
 * second, ends those that are queued and start later. Every API process does this, so one that lives is enough.
 */
export class RemovedUsers {
  readonly #deps: RemovedUsersDeps;
  #known: ReadonlySet<string> = new Set();

  constructor(deps: RemovedUsersDeps) {
    this.#deps = deps;
  }

  /** Takes the ids of all users who were removed lately; resolves once the new ones are recorded, never rejects. */
  async update(ids: readonly string[]): Promise<void> {
    const users = ids.filter((id) => !this.#known.has(id));
    this.#known = new Set(ids);
    if (users.length === 0) return;
    const { relay, signal, log } = this.#deps;
    const message: Cancel = { v: writtenVersion, jobIds: [], users };
    const published = providerIds.map((id) => relay.publish(topics.cancel(id), message));
    void Promise.all(published).catch((err) => log.debug({ err }, 'removed users not published'));
    await retry(() => this.#record(users), { pauseMs: 500, unref: true, signal }).catch((err) =>
      log.debug({ err }, 'removed users not recorded'),
    );
  }

  async #record(users: readonly string[]): Promise<void> {
    const { records } = this.#deps;
    for (;;) {
      const expected = await records.read(removedUsersKey);
      const recorded = decodeRemovedUsers(expected);
      const lacking = users.filter((id) => !recorded.includes(id));
      if (lacking.length === 0) return;
      const record = { value: encodeRemovedUsers([...recorded, ...lacking]), ttlMs: recordTtlMs };
      const isWritten = await (expected === undefined
        ? records.create(removedUsersKey, record)
        : records.replace(removedUsersKey, { expected, ...record }));
      if (isWritten) return;
    }
  }
}
