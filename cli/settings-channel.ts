import { randomUUID } from 'node:crypto';
import type { Database } from '../db/database/client.js';
import type { Config, Environment } from '../shared/config/config.js';
import { queueName, topics } from '../shared/protocol/messages.js';
import type { QueueStore, RecordStore } from '../shared/queue/queue-store.js';
import { openRelay } from '../shared/queue/relay.js';
import { type SettingsChannel, syncLimits } from '../shared/queue/settings-records.js';
import { openQueueStore } from '../shared/queue/stores/open.js';
import type { Log } from '../shared/runtime/log.js';
import { StartupError } from '../shared/runtime/program.js';
import { retry } from '../shared/runtime/retry.js';
import { findDatabase, patienceMs, silentLog, withDatabase } from './database.js';

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
    records: { ...store.records, readAll: patiently(store.records.readAll) },
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

/** A store that is busy may answer none in its time for a request; a person would only ask again. */
const patiently =
  (readAll: RecordStore['readAll']): RecordStore['readAll'] =>
  (keys) =>
    retry(() => readAll(keys), { pauseMs: 100, maxMs: patienceMs });
