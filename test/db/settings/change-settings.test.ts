import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { SettingsKeeper } from '../../../api/admin/operator-settings.js';
import { listAudit } from '../../../db/audit.js';
import { sql } from '../../../db/database/drizzle.js';
import { changePoolSetting, changePoolSettings } from '../../../db/settings/change-settings.js';
import type { Failure } from '../../../shared/failures.js';
import { FleetSettings } from '../../../shared/fleet/live-pools.js';
import {
  decodeSettings,
  type PoolOverrides,
  type ProviderSettings,
  settingsKey,
} from '../../../shared/protocol/settings.js';
import type { RecordStore } from '../../../shared/queue/queue-store.js';
import { openTestDatabase } from '../../support/database.js';
import { createRecordingLog } from '../../support/recording-log.js';

const { database, stop } = await openTestDatabase();
afterAll(stop);

/** The queue's store as far as settings go. */
function createStore() {
  const texts = new Map<string, string>();
  const failUnless = (isUp: boolean) => {
    if (!isUp) throw new Error('down');
  };
  const store = {
    isUp: true,
    published: [] as ProviderSettings[],
    synced: [] as string[],
    records: {
      read: async (key) => texts.get(key),
      readAll: async (keys) => {
        failUnless(store.isUp);
        return keys.map((key) => texts.get(key));
      },
      create: async (key, { value }) => {
        failUnless(store.isUp);
        return !texts.has(key) && Boolean(texts.set(key, value));
      },
      replace: async (key, { expected, value }) =>
        texts.get(key) === expected && Boolean(texts.set(key, value)),
      removeEnded: async () => {},
    } satisfies RecordStore as RecordStore,
    syncLimits: async (id: string) => void store.synced.push(id),
    publish: async (record: ProviderSettings) => void store.published.push(record),
    wipe: () => texts.clear(),
    recorded: () => decodeSettings(texts.get(settingsKey('openai')) ?? ''),
  };
  return store;
}

let store: ReturnType<typeof createStore>;
beforeEach(async () => {
  store = createStore();
  await database.run((db) => db.execute(sql`truncate pool_setting, audit`));
});

const change = (expected: number, overrides: PoolOverrides, changedBy = 'ann') =>
  changePoolSettings(
    { provider: 'openai', overrides, expected, changedBy },
    { database, channel: store, rulesOf: () => [{}] },
  );
const failureOf = (changing: Promise<unknown>): Promise<Failure> =>
  changing.then(
    () => Promise.reject(new Error('it was changed')),
    (failure) => failure,
  );

describe('changePoolSettings', () => {
  it('keeps, records and publishes the settings, and gives BullMQ its limits', async () => {
    const changed = await change(0, { concurrency: 40 });
    expect(changed).toMatchObject({ version: 1, overrides: { concurrency: 40 }, isCopied: true });
    expect(store.recorded()).toMatchObject({ version: 1, overrides: { concurrency: 40 }, changedBy: 'ann' });
    expect(store.published).toEqual([store.recorded()]);
    expect(store.synced).toEqual(['openai']);
  });

  it('refuses a change of what somebody else has changed, and says who and when', async () => {
    await change(0, {});
    const { changedAt } = await change(1, { concurrency: 3 }, 'bob');
    const { code, facts } = await failureOf(change(1, { concurrency: 4 }));
    expect(code).toBe('precondition_failed');
    expect(facts.detail).toContain(`bob saved version 2 at ${changedAt}`);
    expect(facts.headers).toEqual({ ETag: '"2"' });
    expect(store.recorded()).toMatchObject({ version: 2 });
  });

  it('goes on from the version that workers have, when the database was restored', async () => {
    await change(0, {});
    await change(1, { concurrency: 3 });
    await database.run((db) => db.execute(sql`update pool_setting set version = 1, overrides = '{}'`));
    expect((await failureOf(change(1, {}))).code).toBe('precondition_failed');
    expect(await change(2, { concurrency: 5 })).toMatchObject({ version: 3 });
    expect(store.recorded()).toMatchObject({ version: 3, overrides: { concurrency: 5 } });
  });

  it('changes nothing while the store of the queue does not answer', async () => {
    store.isUp = false;
    expect((await failureOf(change(0, { concurrency: 3 }))).code).toBe('queue_unavailable');
    expect(await listAudit(database, { limit: 10 })).toEqual([]);
  });

  it('takes only models that the environment allows, but keeps what was set before', async () => {
    const { code, facts } = await failureOf(
      change(0, {
        ...{ model: 'projects/evil/x', models: ['fine', 'arn:aws:*'] },
        fallback: [{ provider: 'bedrock' }, { provider: 'vertexai', model: 'projects/evil/x' }],
      }),
    );
    expect(code).toBe('invalid_request');
    expect(facts.errors?.map(({ pointer }) => pointer)).toEqual(['/model', '/models/1', '/fallback/1/model']);
    expect(JSON.stringify(facts)).not.toContain('evil');
    expect(await listAudit(database, { limit: 10 })).toEqual([]);
    const earlier = { provider: 'openai', changedBy: 'ann', expected: 0, version: 1 } as const;
    await changePoolSetting(database, { ...earlier, overrides: { model: 'publishers/x' } });
    expect(await change(1, { model: 'publishers/x', intake: 'paused' })).toMatchObject({ version: 2 });
  });

  it('says when the store failed only after the change was made', async () => {
    store.publish = () => Promise.reject(new Error('down'));
    expect(await change(0, { concurrency: 3 })).toMatchObject({ version: 1, isCopied: false });
  });
});

describe('SettingsKeeper', () => {
  const { log } = createRecordingLog();
  const openKeeper = () => {
    const settings = new FleetSettings();
    const keeper = new SettingsKeeper({ settings, database, channel: store, log });
    return { settings, keeper };
  };

  it('knows what the records say', async () => {
    await change(0, { intake: 'draining' });
    const { settings, keeper } = openKeeper();
    await keeper.keep({ withTable: false });
    expect(settings.of('openai')).toEqual({ intake: 'draining' });
    expect(settings.of('bedrock')).toEqual({});
    expect(store.published).toHaveLength(1);
  });

  it('puts back what a wiped store has lost, from what it knows and from the table', async () => {
    await change(0, { globalConcurrency: 3 });
    const { keeper } = openKeeper();
    await keeper.keep({ withTable: false });
    for (const known of [keeper, openKeeper().keeper]) {
      store.wipe();
      store.synced = [];
      await known.keep({ withTable: known !== keeper });
      expect(store.recorded()).toMatchObject({ version: 1, overrides: { globalConcurrency: 3 } });
      expect(store.synced).toEqual(['openai']);
    }
  });

  it('copies what was committed and not copied, and leaves alone what is newer than the table', async () => {
    const set = (expected: number) =>
      changePoolSetting(database, {
        ...{ provider: 'openai', expected, version: expected + 1, changedBy: 'ann' },
        overrides: { concurrency: expected + 1 },
      });
    await set(0);
    const { settings, keeper } = openKeeper();
    await keeper.keep({ withTable: true });
    expect(store.recorded()).toMatchObject({ version: 1 });
    await change(1, { concurrency: 9 });
    await database.run((db) => db.execute(sql`update pool_setting set version = 1`));
    await keeper.keep({ withTable: true });
    expect(settings.of('openai')).toEqual({ concurrency: 9 });
    expect(store.recorded()).toMatchObject({ version: 2 });
  });

  it('goes on with what it knows while the store does not answer', async () => {
    await change(0, { intake: 'paused' });
    const { settings, keeper } = openKeeper();
    await keeper.keep({ withTable: false });
    store.isUp = false;
    await keeper.keep({ withTable: true });
    expect(settings.of('openai')).toEqual({ intake: 'paused' });
  });
});
