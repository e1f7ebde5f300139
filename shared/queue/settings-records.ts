import type { Queue } from 'bullmq';
import type { ProviderId } from '../contracts/contract.js';
import {
  decodeSettings,
  encodeSettings,
  type ProviderSettings,
  type SettingsRecord,
  settingsKey,
} from '../protocol/settings.js';
import { isNewer, writtenVersion } from '../protocol/version.js';
import type { QueueStore, RecordStore } from './queue-store.js';

/** How settings get to the fleet. */
export interface SettingsChannel {
  readonly records: RecordStore;
  /** Gives BullMQ the limits that the provider's record names. */
  syncLimits(id: ProviderId): Promise<void>;
  /** Publishes the record on `settings.<provider>`. */
  publish(record: SettingsRecord): Promise<void>;
}

/** The records of these providers' settings, in their order; undefined for one that is not there or cannot be read. */
export async function readSettings(
  records: Pick<RecordStore, 'readAll'>,
  ids: readonly ProviderId[],
): Promise<(ProviderSettings | undefined)[]> {
  return (await records.readAll(ids.map(settingsKey))).map(decodeSettings);
}

/** Records the settings, unless those recorded are as new or newer. */
export async function recordSettings(
  records: Pick<RecordStore, 'read' | 'create' | 'replace'>,
  settings: ProviderSettings,
): Promise<void> {
  const key = settingsKey(settings.provider);
  const value = encodeSettings(settings);
  for (;;) {
    const recorded = await records.read(key);
    if (recorded === undefined) {
      if (await records.create(key, { value })) return;
    } else {
      const { version = 0 } = decodeSettings(recorded) ?? {};
      if (version >= settings.version || isNewer(recorded)) return;
      if (await records.replace(key, { expected: recorded, value })) return;
    }
  }
}

/** Records settings in the queue's store, gives BullMQ its limits, and has every process know. */
export async function copySettings(settings: ProviderSettings, channel: SettingsChannel): Promise<void> {
  await recordSettings(channel.records, settings);
  await Promise.all([
    channel.publish({ ...settings, v: writtenVersion }),
    channel.syncLimits(settings.provider),
  ]);
}

/** Gives BullMQ the limits in the provider's record, if there is one; those of a newer one if it changes meanwhile. */
export async function syncLimits(
  store: Pick<QueueStore, 'records' | 'wake'>,
  queue: Queue,
  id: ProviderId,
): Promise<void> {
  for (let synced = 0; ; ) {
    const [record] = await readSettings(store.records, [id]);
    if (record === undefined || record.version === synced) return;
    synced = record.version;
    const changes = await Promise.all([
      syncConcurrency(queue, record.overrides),
      syncRate(queue, record.overrides),
    ]);
    if (changes.includes(true)) await store.wake(queue);
  }
}

type Overrides = ProviderSettings['overrides'];

/** Whether it had to be changed. */
async function syncConcurrency(queue: Queue, { globalConcurrency }: Overrides): Promise<boolean> {
  const current = (await queue.getGlobalConcurrency()) ?? undefined;
  if (current === globalConcurrency) return false;
  if (globalConcurrency === undefined) await queue.removeGlobalConcurrency();
  else await queue.setGlobalConcurrency(globalConcurrency);
  return true;
}

/** Whether it had to be changed. The window that runs may be a long one, of the old rate: a new one begins. */
async function syncRate(queue: Queue, { rate }: Overrides): Promise<boolean> {
  const current = await queue.getGlobalRateLimit();
  if (current?.max === rate?.max && current?.duration === rate?.durationMs) return false;
  if (rate === undefined) await queue.removeGlobalRateLimit();
  else await queue.setGlobalRateLimit(rate.max, rate.durationMs);
  await queue.removeRateLimitKey();
  return true;
}
