import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { freePort } from '../../dev/free-port.js';
import { parseConfig } from '../../shared/config/config.js';
import { queueName } from '../../shared/protocol/messages.js';
import type { QueueStore } from '../../shared/queue/queue-store.js';
import { openQueueStore } from '../../shared/queue/stores/open.js';
import { startEmptyDatabase, type TestDatabase } from '../support/database.js';
import { authorization, type Deployment, startDeployment } from '../support/deployment.js';
import { patience } from '../support/patience.js';
import { profiles } from '../support/profiles.js';
import { createRecordingLog } from '../support/recording-log.js';
import { findRedisBinary } from '../support/redis-binary.js';

const binary = findRedisBinary();
const dir = mkdtempSync(join(tmpdir(), 'quillgate-redis-'));
let port: number;
let server: ChildProcess;
let redis: Redis;
let database: TestDatabase;
let deployment: Deployment;
let store: QueueStore;

/** Starts from the snapshot in the folder, if there is one, and takes another only when told to. */
async function startRedis(program: string): Promise<void> {
  const options = ['--port', String(port), '--bind', '127.0.0.1', '--dir', dir, '--save', ''];
  server = spawn(program, options, { stdio: 'ignore' });
  await vi.waitFor(async () => expect(await redis.ping()).toBe('PONG'), patience);
}

async function killRedis(): Promise<void> {
  server.kill('SIGKILL');
  await once(server, 'exit');
}

const messages = [{ content: 'Hello' }];
const keyed = { messages, headers: { 'Idempotency-Key': 'before-the-snapshot' } };

async function statusOf(id: unknown): Promise<unknown> {
  const response = await fetch(`${deployment.url}/chat/${id}`, { headers: { Authorization: authorization } });
  return ((await response.json()) as { status: unknown }).status;
}

async function waiting(): Promise<number> {
  const queue = store.createQueue(queueName('anthropic'));
  const counts = await queue.getJobCounts('waiting', 'prioritized');
  await queue.close();
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

describe('a snapshot of Redis', () => {
  if (binary === undefined) return it.skip('(did not run: no redis-server or valkey-server on the PATH)');

  beforeAll(async () => {
    port = await freePort();
    redis = new Redis(port, '127.0.0.1', { retryStrategy: () => 20, maxRetriesPerRequest: null });
    redis.on('error', () => undefined);
    await startRedis(binary);
    database = await startEmptyDatabase();
    deployment = await startDeployment({
      store: { kind: 'redis', url: `redis://127.0.0.1:${port}`, databaseUrl: database.url },
      variables: { ...profiles.plain, WORKER_PROVIDERS: 'openai', CHAT_MAX_WAIT_S: '2' },
    });
    store = openQueueStore(parseConfig(deployment.stores, 'migrate'), createRecordingLog().log);
  });
  afterAll(async () => {
    await store?.close();
    await deployment?.stop();
    await database?.stop();
    redis?.disconnect();
    if (server) await killRedis();
    rmSync(dir, { recursive: true, force: true });
  });

  it('is restored late → no old question is asked, and the answers are kept', async () => {
    const { chat, simulator, startWorker } = deployment;
    const isAsync = { Prefer: 'respond-async' };
    const untaken = chat({ provider: 'anthropic', messages, headers: { Prefer: 'wait=2' } });
    const { body } = await chat({ provider: 'anthropic', messages, headers: isAsync });
    expect((await chat(keyed)).status).toBe(200);
    await vi.waitFor(async () => expect(await waiting()).toBe(2), patience);
    await redis.save();
    expect((await untaken).body.code).toBe('timeout');
    await vi.waitFor(async () => expect(await statusOf(body.id)).toBe('expired'), patience);

    await killRedis();
    await startRedis(binary);
    await vi.waitFor(async () => expect(await waiting()).toBe(2), patience);
    await startWorker({ WORKER_PROVIDERS: 'anthropic' });
    await vi.waitFor(async () => expect(await waiting()).toBe(0), patience);
    const late = () => chat({ provider: 'anthropic', messages, model: 'sim-echo@late' });
    await vi.waitFor(async () => expect((await late()).status).toBe(200), patience);
    const calls = simulator.calls.list().filter(({ facts }) => facts.provider === 'anthropic');
    expect(calls.map(({ model }) => model)).not.toContain('sim-echo');
    expect(await statusOf(body.id)).toBe('expired');
    const again = await chat(keyed);
    expect(again.headers.get('idempotency-replayed')).toBe('true');
    expect(simulator.calls.list().filter(({ facts }) => facts.provider === 'openai')).toHaveLength(1);
  });
});
