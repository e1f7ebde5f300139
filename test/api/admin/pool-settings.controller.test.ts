import { afterAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { listAudit } from '../../../db/audit.js';
import { sql } from '../../../db/database/drizzle.js';
import type { PoolSettings } from '../../../shared/contracts/fleet-contract.js';
import { Failure } from '../../../shared/failures.js';
import { Heartbeats } from '../../../shared/fleet/heartbeats.js';
import { LivePools } from '../../../shared/fleet/live-pools.js';
import type { PoolHeartbeat } from '../../../shared/protocol/messages.js';
import type { RecordStore } from '../../../shared/queue/queue-store.js';
import { startApp } from '../../support/app.js';
import { openTestDatabase } from '../../support/database.js';
import { heartbeatOf } from '../../support/heartbeats.js';

const opened = await openTestDatabase();
const { database } = opened;
const texts = new Map<string, string>();
let heartbeats: Heartbeats;
let pools: LivePools;

const records: RecordStore = {
  read: async (key) => texts.get(key),
  readAll: async (keys) => keys.map((key) => texts.get(key)),
  create: async (key, { value }) => Boolean(texts.set(key, value)),
  replace: async (key, { value }) => Boolean(texts.set(key, value)),
  removeEnded: async () => {},
};
const app = await startApp({
  settings: {
    assertConnected: () => undefined,
    get heartbeats() {
      return heartbeats;
    },
    get pools() {
      return pools;
    },
    settingsChannel: { records, syncLimits: async () => {}, publish: async () => {} },
  },
  opened,
  variables: { OPENAI_CONCURRENCY: '7' },
});
afterAll(app.close);
beforeEach(async () => {
  texts.clear();
  heartbeats = new Heartbeats();
  pools = new LivePools(heartbeats);
  await database.run((db) => db.execute(sql`truncate pool_setting, audit`));
});

const path = '/admin/pools/openai';
const ask = (at = path) => app.operate<PoolSettings>({ path: at });
const put = (body: unknown, ifMatch?: string, at = path) =>
  app.operate<PoolSettings>({
    method: 'PUT',
    ...{ path: at, body },
    headers: { ...(ifMatch !== undefined && { 'If-Match': ifMatch }) },
  });
const settingOf = ({ settings }: PoolSettings, name: string) => settings.find((one) => one.name === name);
const service = { count: 300, overMs: 300_000, meanMs: 4000, p50Ms: 3000, p99Ms: 9000 };
const heartbeat = (worker: string, settingsVersion: number, facts: Partial<PoolHeartbeat> = {}) =>
  heartbeats.add(
    heartbeatOf({
      ...{ worker, concurrency: 20, configured: { concurrency: 7 }, settingsVersion, service },
      ...facts,
    }),
  );

describe('GET /admin/pools/{provider}', () => {
  it('is asked while the database is away -> each value in force, where it comes from, and which bound binds', async () => {
    const away = vi.spyOn(database, 'run').mockRejectedValue(new Failure('database_unavailable'));
    onTestFinished(() => away.mockRestore());
    const response = await ask();
    expect([response.status, response.headers.get('etag')]).toEqual([200, '"0"']);
    const settings = response.body;
    expect(settings).toMatchObject({
      ...{ provider: 'openai', version: 0 },
      concurrency: { workers: 0, boundBy: 'workers' },
      workers: { live: 0, current: 0 },
    });
    expect(settingOf(settings, 'concurrency')).toEqual({
      name: 'concurrency',
      value: 7,
      source: 'environment',
    });
    expect(settingOf(settings, 'timeoutMs')).toMatchObject({ value: 600_000, source: 'default' });
    expect(settingOf(settings, 'rate')).toMatchObject({ value: null, source: 'default' });
  });

  it('is asked -> what the environment of the workers sets, not that of the API process', async () => {
    heartbeat('two', 0, { configured: { concurrency: 9 } });
    heartbeat('one', 0, {
      configured: { concurrency: 20, timeoutMs: 9000, models: ['gpt-*'] },
      ...{ defaultModel: 'gpt-mini', models: ['gpt-*'] },
    });
    const { body: settings } = await ask();
    const shown = (name: string) => settingOf(settings, name);
    expect(shown('concurrency')).toMatchObject({ value: 20, source: 'environment' });
    expect(shown('timeoutMs')).toMatchObject({ value: 9000, source: 'environment' });
    expect(shown('idleTimeoutMs')).toMatchObject({ value: 300_000, source: 'default' });
    expect(shown('model')).toMatchObject({ value: 'gpt-mini', source: 'default' });
    expect(shown('models')).toMatchObject({ value: ['gpt-*'], source: 'environment' });
  });

  it.each(['nobody', 'OPENAI', '__proto__', '%00'])('is of a provider %s -> 404', async (name) => {
    expect((await ask(`/admin/pools/${name}`)).status).toBe(404);
    expect((await put({}, '"0"', `/admin/pools/${name}`)).status).toBe(404);
  });
});

describe('PUT /admin/pools/{provider}', () => {
  it('is sent settings -> they are replaced, and it says how many workers have them', async () => {
    heartbeat('one', 1);
    heartbeat('two', 0);
    const response = await put({ concurrency: 40, globalConcurrency: 30 }, '"0"');
    expect([response.status, response.headers.get('etag')]).toEqual([200, '"1"']);
    const settings = response.body;
    expect(settings).toMatchObject({
      ...{ version: 1, changedBy: 'operator' },
      concurrency: { workers: 40, global: 30, boundBy: 'global' },
      workers: { live: 2, current: 1 },
    });
    expect(settings).not.toHaveProperty('isPending');
    expect(settings.suggestion).toMatchObject({ concurrency: 11, perWorker: 6, jobs: 600 });
    expect(settingOf(settings, 'concurrency')).toMatchObject({ value: 40, source: 'override' });
    expect((await ask()).body).toEqual(settings);
    expect(await listAudit(database, { limit: 5 })).toMatchObject([{ actor: 'operator', before: {} }]);
    // As a proxy that compresses gives it back.
    expect((await put({}, 'W/"0"')).status).toBe(412);
    const { body: reset } = await put({}, 'W/"1-gzip"');
    expect(settingOf(reset, 'concurrency')).toMatchObject({ value: 7, source: 'environment' });
  });

  it.each([undefined, '*', '0', 'W/0', '"00"', '"-1"', '"9999999999"', '"0", "1"'])(
    'has If-Match: %s -> 400',
    async (ifMatch) => {
      const body = { errors: [{ pointer: 'If-Match' }] };
      expect(await put({}, ifMatch)).toMatchObject({ status: 400, body });
    },
  );

  it.each([
    [{ concurrency: 'canary' }, '/concurrency'],
    [{ rate: { max: 1, durationMs: 'canary' } }, '/rate/durationMs'],
    [{ models: ['m', 'a canary'] }, '/models/1'],
    [{ canary: 1 }, ''],
    [[], ''],
    [null, ''],
  ])('has the body %j -> 400 that points at %j, and repeats nothing that was sent', async (body, pointer) => {
    const response = await put(body, '"0"');
    const refused = { code: 'invalid_request', errors: [{ pointer }] };
    expect(response).toMatchObject({ status: 400, body: refused });
    expect(response.text).not.toContain('canary');
    expect(await listAudit(database, { limit: 5 })).toEqual([]);
  });

  it('names a path as a model -> taken only where each worker allows it, and never without a worker', async () => {
    const model = 'projects/evil/locations/x/endpoints/1';
    expect((await put({ model }, '"0"', '/admin/pools/vertexai')).status).toBe(400);
    expect((await put({ model: 'gpt-5' }, '"0"')).status).toBe(200);
    heartbeat('one', 1);
    expect((await put({ models: ['projects/*'] }, '"1"')).status).toBe(400);
    heartbeat('one', 1, { models: ['*'], environment: { models: ['projects/*'] } });
    expect((await put({ models: ['projects/a*'] }, '"1"')).status).toBe(200);
    const error = { pointer: '/models/0', detail: expect.stringContaining('OPENAI_MODELS') };
    expect(await put({ models: ['*'] }, '"2"')).toMatchObject({ status: 400, body: { errors: [error] } });
  });
});
