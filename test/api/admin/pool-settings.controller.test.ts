import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { listAudit } from '../../../db/audit.js';
import { sql } from '../../../db/database/drizzle.js';
import type { PoolSettings } from '../../../shared/contracts/fleet-contract.js';
import { Failure } from '../../../shared/failures.js';
import { Heartbeats } from '../../../shared/fleet/heartbeats.js';
import { LivePools } from '../../../shared/fleet/live-pools.js';
import type { PoolHeartbeat } from '../../../shared/protocol/messages.js';
import type { RecordStore } from '../../../shared/queue/queue-store.js';
import { type ChatApp, startChatApp } from '../../support/chat-app.js';
import { openTestDatabase } from '../../support/database.js';
import { heartbeatOf } from '../../support/heartbeats.js';

const { database, stop } = await openTestDatabase();
const texts = new Map<string, string>();
let heartbeats: Heartbeats;
let pools: LivePools;
let isDatabaseUp = true;
let app: ChatApp;

const records: RecordStore = {
  read: async (key) => texts.get(key),
  readAll: async (keys) => keys.map((key) => texts.get(key)),
  create: async (key, { value }) => Boolean(texts.set(key, value)),
  replace: async (key, { value }) => Boolean(texts.set(key, value)),
  removeEnded: async () => {},
};
beforeAll(async () => {
  app = await startChatApp({
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
    adminDatabase: {
      run: (...query) => (isDatabaseUp ? database : openDown).run(...query),
    },
    variables: { OPENAI_CONCURRENCY: '7' },
  });
});
afterAll(async () => {
  await app.close();
  await stop();
});
beforeEach(async () => {
  isDatabaseUp = true;
  texts.clear();
  heartbeats = new Heartbeats();
  pools = new LivePools(heartbeats);
  await database.run((db) => db.execute(sql`truncate pool_setting, audit`));
});

const openDown: Pick<typeof database, 'run'> = {
  run: () => Promise.reject(new Failure('database_unavailable')),
};
const path = '/admin/pools/openai';
const ask = (init: RequestInit & { headers?: Record<string, string> } = {}, at = path) =>
  fetch(`${app.url}${at}`, { ...init, headers: { Authorization: 'Bearer operator', ...init.headers } });
const put = (body: unknown, ifMatch?: string, at = path) =>
  ask(
    {
      method: 'PUT',
      body: JSON.stringify(body),
      headers: { 'Content-Type': 'application/json', ...(ifMatch !== undefined && { 'If-Match': ifMatch }) },
    },
    at,
  );
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
    isDatabaseUp = false;
    const response = await ask();
    expect([response.status, response.headers.get('etag')]).toEqual([200, '"0"']);
    const settings = (await response.json()) as PoolSettings;
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
    const settings = (await (await ask()).json()) as PoolSettings;
    const shown = (name: string) => settingOf(settings, name);
    expect(shown('concurrency')).toMatchObject({ value: 20, source: 'environment' });
    expect(shown('timeoutMs')).toMatchObject({ value: 9000, source: 'environment' });
    expect(shown('idleTimeoutMs')).toMatchObject({ value: 300_000, source: 'default' });
    expect(shown('model')).toMatchObject({ value: 'gpt-mini', source: 'default' });
    expect(shown('models')).toMatchObject({ value: ['gpt-*'], source: 'environment' });
  });

  it.each(['nobody', 'OPENAI', '__proto__', '%00'])('is of a provider %s -> 404', async (name) => {
    expect((await ask({}, `/admin/pools/${name}`)).status).toBe(404);
    expect((await put({}, '"0"', `/admin/pools/${name}`)).status).toBe(404);
  });
});

describe('PUT /admin/pools/{provider}', () => {
  it('is sent settings -> they are replaced, and it says how many workers have them', async () => {
    heartbeat('one', 1);
    heartbeat('two', 0);
    const response = await put({ concurrency: 40, globalConcurrency: 30 }, '"0"');
    expect([response.status, response.headers.get('etag')]).toEqual([200, '"1"']);
    const settings = (await response.json()) as PoolSettings;
    expect(settings).toMatchObject({
      ...{ version: 1, changedBy: 'operator' },
      concurrency: { workers: 40, global: 30, boundBy: 'global' },
      workers: { live: 2, current: 1 },
    });
    expect(settings).not.toHaveProperty('isPending');
    expect(settings.suggestion).toMatchObject({ concurrency: 11, perWorker: 6, jobs: 600 });
    expect(settingOf(settings, 'concurrency')).toMatchObject({ value: 40, source: 'override' });
    expect(await (await ask()).json()).toEqual(settings);
    expect(await listAudit(database, { limit: 5 })).toMatchObject([{ actor: 'operator', before: {} }]);
    // As a proxy that compresses gives it back.
    expect((await put({}, 'W/"0"')).status).toBe(412);
    const reset = (await (await put({}, 'W/"1-gzip"')).json()) as PoolSettings;
    expect(settingOf(reset, 'concurrency')).toMatchObject({ value: 7, source: 'environment' });
  });

  it.each([undefined, '*', '0', 'W/0', '"00"', '"-1"', '"9999999999"', '"0", "1"'])(
    'has If-Match: %s -> 400',
    async (ifMatch) => {
      const response = await put({}, ifMatch);
      expect(response.status).toBe(400);
      expect(await response.json()).toMatchObject({ errors: [{ pointer: 'If-Match' }] });
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
    expect(response.status).toBe(400);
    const text = await response.text();
    expect(JSON.parse(text)).toMatchObject({ code: 'invalid_request', errors: [{ pointer }] });
    expect(text).not.toContain('canary');
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
    const response = await put({ models: ['*'] }, '"2"');
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({
      errors: [{ pointer: '/models/0', detail: expect.stringContaining('OPENAI_MODELS') }],
    });
  });
});
