import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { queueName } from '../../../shared/protocol/messages.js';
import { type PoolOverrides, settingsKey } from '../../../shared/protocol/settings.js';
import type { QueueStore } from '../../../shared/queue/queue-store.js';
import { readSettings, recordSettings, syncLimits } from '../../../shared/queue/settings-records.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { describeStores } from '../../support/shared-store.js';

describeStores('settings in $kind', createRecordingLog().log, (shared) => {
  let store: QueueStore;
  let queue: ReturnType<QueueStore['createQueue']>;
  let version = 0;

  beforeAll(() => {
    store = shared.another;
    queue = store.createQueue(queueName('openai'));
  });
  afterAll(() => queue?.close());
  beforeEach(() => {
    version += 10;
  });

  const settings = (ofVersion: number, overrides: PoolOverrides = {}) => ({
    ...({ provider: 'openai', version: ofVersion, overrides } as const),
    ...{ changedAt: '2026-11-22T10:00:00.000Z', changedBy: 'ann' },
  });
  const record = (ofVersion: number, overrides?: PoolOverrides) =>
    recordSettings(store.records, settings(ofVersion, overrides));
  const recorded = async () => (await readSettings(store.records, ['openai']))[0];
  const sync = () => syncLimits(store, queue, 'openai');
  const limits = async () => [await queue.getGlobalConcurrency(), await queue.getGlobalRateLimit()];

  it('many who record at once -> the newest settings are kept', async () => {
    await record(version, { concurrency: 1 });
    await record(version - 1, { concurrency: 2 });
    await record(version, { concurrency: 3 });
    expect(await recorded()).toMatchObject({ version, overrides: { concurrency: 1 } });
    await Promise.all([3, 1, 5, 2, 4].map((n) => record(version + n, { concurrency: n })));
    expect(await recorded()).toMatchObject({ version: version + 5, overrides: { concurrency: 5 } });
  });

  it('a record that cannot be read -> is replaced, unless a newer release has written it', async () => {
    const key = settingsKey('anthropic');
    const anthropic = { ...settings(1), provider: 'anthropic' as const };
    await store.records.create(key, { value: 'no JSON' });
    await recordSettings(store.records, anthropic);
    expect(await readSettings(store.records, ['anthropic', 'bedrock'])).toMatchObject([
      { version: 1 },
      undefined,
    ]);
    const expected = (await store.records.read(key)) ?? '';
    await store.records.replace(key, { expected, value: '{"v":5}' });
    await recordSettings(store.records, { ...anthropic, version: 9 });
    expect(await store.records.read(key)).toBe('{"v":5}');
  });

  it('limits that are set, changed and taken away -> those of the queue follow', async () => {
    await record(version, { globalConcurrency: 3, rate: { max: 5, durationMs: 1000 } });
    await sync();
    expect(await limits()).toEqual([3, { max: 5, duration: 1000 }]);
    await record(version + 1, { rate: { max: 5, durationMs: 2000 } });
    await sync();
    expect(await limits()).toEqual([null, { max: 5, duration: 2000 }]);
    await record(version + 2);
    await sync();
    expect(await limits()).toEqual([null, null]);
  });

  it('a rate that becomes higher -> does not wait for the window of the old one', async () => {
    await record(version, { rate: { max: 1, durationMs: 3_600_000 } });
    await sync();
    const worker = store.createWorker(queueName('openai'), async () => '', { autorun: false });
    await Promise.all([queue.add('chat', {}), queue.add('chat', {})]);
    expect(await worker.getNextJob('one', { block: false })).toBeDefined();
    expect(await worker.getNextJob('two', { block: false })).toBeUndefined();
    await record(version + 1, { rate: { max: 2, durationMs: 3_600_000 } });
    await sync();
    // As another worker: this one remembers for how long it was limited.
    const another = store.createWorker(queueName('openai'), async () => '', { autorun: false });
    expect(await another.getNextJob('three', { block: false })).toBeDefined();
    await Promise.all([worker.close(true), another.close(true)]);
  });
});
