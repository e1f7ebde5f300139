import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseConfig } from '../../shared/config/config.js';
import { providerIds } from '../../shared/contracts/contract.js';
import { queueName } from '../../shared/protocol/messages.js';
import { writeBlob } from '../../shared/queue/blobs.js';
import type { QueueStore } from '../../shared/queue/queue-store.js';
import { openQueueStore } from '../../shared/queue/stores/open.js';
import { connectRedis } from '../../shared/queue/stores/redis-connection.js';
import { parseRedisUrl } from '../../shared/urls/redis-url.js';
import { patienceMs } from '../support/patience.js';
import { createRecordingLog } from '../support/recording-log.js';
import { openRedis } from '../support/redis-masters.js';
import { type RedisTopology, startTopology } from '../support/redis-topologies.js';

describe('a store on a cluster', () => {
  let cluster: RedisTopology;
  let store: QueueStore;
  const open = (url: string) =>
    openQueueStore(parseConfig({ REDIS_URL: url }, 'config'), createRecordingLog().log);

  beforeAll(async () => {
    cluster = await startTopology.cluster();
    store = open(cluster.url);
    expect(await store.whenReady(AbortSignal.timeout(patienceMs))).toBe(true);
  });
  afterAll(async () => {
    await store?.close();
    await cluster?.stop();
  });

  it('has queues and relay on all masters', async () => {
    const queues = providerIds.map((id) => store.createQueue(queueName(id)));
    await Promise.all(queues.map((queue) => queue.add('chat', {}, { jobId: 'a-job' })));
    const relay = store.createRelay({ namespace: 'quillgate', name: 'test' });
    await relay.waitUntilReady();
    const { redis, masters } = await openRedis(cluster.url);
    const sizes = await Promise.all(masters.map((master) => master.dbsize()));
    redis.disconnect();
    await relay.close();
    expect(sizes).toHaveLength(3);
    expect(Math.min(...sizes)).toBeGreaterThan(0);
  });

  it('has the chunks of an image on several masters', async () => {
    const [image, bytes] = [{ user: 'one', key: 'a'.repeat(64) }, randomBytes(5_242_880)];
    await writeBlob(store.blobs, image, { bytes, ttlMs: () => 60_000 });
    const { redis, masters } = await openRedis(cluster.url);
    const found = await Promise.all(masters.map((master) => master.keys('*image.one.*')));
    redis.disconnect();
    expect(found.flat()).toHaveLength(20);
    expect(Math.min(...found.map((keys) => keys.length))).toBeGreaterThan(0);
    const chunks = await store.blobs.read(image, { chunks: 20 });
    expect(Buffer.concat(chunks.flatMap((chunk) => chunk ?? []))).toEqual(bytes);
  });

  it('has an outbox, and counts lost runs', async () => {
    await store.outbox.append(['one', 'two']);
    const [first] = await store.outbox.read({ limit: 1 });
    expect(first?.entry).toBe('one');
    await store.outbox.remove([first?.id ?? '']);
    expect(await store.outbox.size()).toEqual({ entries: 1, oldestAt: expect.any(Number) });
    const queue = store.createQueue(queueName('vertexai'));
    await queue.add('chat', {}, { jobId: 'counted', timestamp: 1 });
    const runs = await store.lostRuns(queue, ['counted', 'none']);
    expect(runs).toEqual([{ id: 'counted', name: 'chat', addedAt: 1, lost: 0 }]);
    await queue.close();
  });

  it('is shared by deployments with prefixes of their own', async () => {
    const other = open(`${cluster.url}?prefix=other`);
    expect(await other.whenReady(AbortSignal.timeout(patienceMs))).toBe(true);
    await store.records.create('key', { value: 'one', ttlMs: 60_000 });
    expect(await other.records.read('key')).toBeUndefined();
    const queue = other.createQueue(queueName('openai'));
    await queue.add('chat', {}, { jobId: 'another-job' });
    expect(await queue.getJobCounts('waiting')).toEqual({ waiting: 1 });
    await other.close();
  });

  it('is not ready while one master alone may evict jobs', async () => {
    await store.check();
    const { redis, masters } = await openRedis(cluster.url);
    await masters.at(-1)?.config('SET', 'maxmemory-policy', 'allkeys-lru');
    await expect(store.check()).rejects.toThrow(/maxmemory-policy to noeviction \(it is allkeys-lru\)/);
    await masters.at(-1)?.config('SET', 'maxmemory-policy', 'noeviction');
    await store.check();
    redis.disconnect();
  });

  it('is not ready while a part of the keys has no master', async () => {
    const master = await cluster.masterOf('{quillgate:chat-openai}');
    const replica = await cluster.replicaOf(master);
    await replica.kill();
    await master.kill();
    await expect
      .poll(
        () =>
          store.check().then(
            () => 'ready',
            (error) => error.code,
          ),
        { timeout: 5000 },
      )
      .toBe('CLUSTERDOWN');
    // As BullMQ does for a worker whose blocking read has not come back.
    const connection = connectRedis(parseRedisUrl(cluster.url), 'blocking').on('error', () => undefined);
    await once(connection, 'ready');
    connection.disconnect();
    await connection.connect();
    connection.disconnect();
    await master.start();
    await replica.start();
    expect(await store.whenReady(AbortSignal.timeout(patienceMs))).toBe(true);
  });
});
