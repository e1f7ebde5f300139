import type { Redis } from 'ioredis';
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { queueName } from '../../shared/protocol/messages.js';
import { startPruner } from '../../shared/queue/pruner.js';
import type { QueueStore } from '../../shared/queue/queue-store.js';
import { authorization, type Deployment, startDeployment } from '../support/deployment.js';
import { withLag } from '../support/lateness.js';
import { openStoreOf } from '../support/opened-store.js';
import { patience } from '../support/patience.js';
import { createRecordingLog } from '../support/recording-log.js';
import { openRedis } from '../support/redis-masters.js';

let deployment: Deployment;
let store: QueueStore;
const recording = createRecordingLog();

beforeEach(async () => {
  deployment = await startDeployment({
    variables: {
      WORKER_PROVIDERS: 'openai',
      WORKER_LOCK_MS: '1000',
      CHAT_TIMEOUT_MS: '2000',
      CHAT_MAX_WAIT_S: '2',
    },
  });
  store = await openStoreOf(deployment.stores);
});
afterEach(async () => {
  await store.close();
  await deployment.stop();
});

const maxMs = 2000;
const forgotten = (canary: string) =>
  vi.waitFor(async () => expect(await whereIn(deployment.stores, canary)).toEqual([]), patience);

/** Looks after the queues until the test is over, without waiting for long. */
async function tidying(work: () => Promise<void>, times: { keptMs: number } | { marginMs: number }) {
  const upkeep = startPruner({ store, maxMs, log: recording.log }, { everyMs: 50, ...times });
  await work().finally(() => upkeep.stop());
}

describe('upkeep', () => {
  it('leaves no byte of a prompt or an answer in the store once their time is over', async () => {
    const canary = 'canary-of-an-answered-chat';
    const messages = [{ content: canary }];
    const { body } = await deployment.chat({ model: 'sim-verbatim', messages });
    expect(body.response).toBe(canary);
    expect((await deployment.chat({ model: 'sim-status-400', messages })).status).toBe(500);
    const before = await whereIn(deployment.stores, canary);
    // The programs' own pruners may have been at the events already.
    expect(before).not.toEqual([]);
    await tidying(() => forgotten(canary), { keptMs: 0 });
  });

  it('leaves no long conversation for the minute that the record of an ended job is kept', async () => {
    const canary = 'canary-of-a-long-conversation';
    const content = `${canary} ${'x'.repeat(20_000)}`;
    expect((await deployment.chat({ model: 'sim-status-400', messages: [{ content }] })).status).toBe(500);
    await forgotten(canary);
  });

  it('leaves no long tool for that minute either', async () => {
    const canary = 'canary-of-a-long-tool';
    const tool = { name: 'look', description: `${canary} ${'x'.repeat(20_000)}` };
    const { status } = await fetch(`${deployment.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { Authorization: authorization, 'Content-Type': 'application/json' },
      body: JSON.stringify({
        ...{ model: 'openai/sim-status-400', messages: [{ role: 'user', content: 'Hello' }] },
        tools: [{ type: 'function', function: tool }],
      }),
    });
    expect(status).toBe(400);
    await forgotten(canary);
  });

  it('is done by an API process without workers: events go soon, the records of jobs when nobody asks any more', async () => {
    const { headers } = await deployment.chat({ messages: [{ content: 'canary-of-a-record' }] });
    const [worker] = deployment.workers;
    process.kill(worker?.pid ?? 0, 'SIGKILL');
    const queue = store.createQueue(queueName('openai'));
    const events = store.kind === 'redis' ? queue.toKey('events') : 'bullmq.event';
    const places = () => whereIn(deployment.stores, 'canary-of-a-record');
    await vi.waitFor(async () => expect(await places()).not.toContain(events), {
      ...patience,
      interval: 200,
    });
    expect(await queue.getJob(headers.get('x-request-id') ?? '')).toBeDefined();
    await queue.close();
  }, 40_000);

  it('forgets a prompt that no worker took or could read, and one whose worker died with nobody to take over', async () => {
    const canary = 'canary-of-an-unanswered-chat';
    const messages = [{ content: canary }];
    const untaken = deployment.chat({ provider: 'anthropic', messages });
    const isAsync = { Prefer: 'respond-async' };
    await deployment.chat({ provider: 'anthropic', messages, headers: isAsync });
    const abandoned = deployment.chat({ model: 'sim-hang', messages });
    await deployment.simulator.waitForCall(({ model }) => model === 'sim-hang');
    const ofNewer = store.createQueue(queueName('openai'));
    await ofNewer.add('chat', { v: 3, turns: canary }, { jobId: 'newer' });
    await vi.waitFor(async () => expect(await ofNewer.getJobState('newer')).toBe('delayed'), patience);
    await ofNewer.close();
    const [worker] = deployment.workers;
    process.kill(worker?.pid ?? 0, 'SIGKILL');
    const replies = await Promise.all([untaken, abandoned]);
    expect(replies.map(({ body }) => body.code)).toEqual(['timeout', 'timeout']);
    const queue = store.createQueue(queueName('anthropic'));
    expect(await queue.getJobCounts('waiting', 'prioritized')).toEqual({ waiting: 1, prioritized: 1 });
    await queue.close();
    await tidying(() => forgotten(canary), { marginMs: 0 });
  });

  it('leaves unfinished jobs alone in a process that gives no deadlines', async () => {
    const [first, last] = ['anthropic', 'vertexai'] as const;
    const queues = [first, last].map((id) => store.createQueue(queueName(id)));
    const worker = store.createWorker(queueName(last), async () => 'done', {});
    const completed = new Promise((resolve) => worker.once('completed', resolve));
    await Promise.all(queues.map((queue) => queue.add('chat', {}, { jobId: 'old' })));
    await completed;
    await worker.close();
    const upkeep = startPruner({ store, log: recording.log }, { everyMs: 50, keptMs: 0, marginMs: -10_000 });
    // Queues are tidied one after the other.
    await vi.waitFor(async () => expect(await queues[1]?.getJobState('old')).toBe('unknown'), patience);
    expect(await queues[0]?.getJobState('old')).toBe('waiting');
    await upkeep.stop();
    await Promise.all(queues.map((queue) => queue.close()));
  });

  it('is done by one process at a time, however many there are', async () => {
    const times: number[] = [];
    const everyMs = 200;
    const removeEnded = async () => void times.push(performance.now());
    const noting: QueueStore = { ...store, records: { ...store.records, removeEnded } };
    const all = Array.from({ length: 10 }, () =>
      startPruner({ store: noting, log: recording.log }, { everyMs }),
    );
    const { lagMs } = await withLag(() =>
      vi.waitFor(() => expect(times.length).toBeGreaterThan(10), patience),
    );
    const tookMs = (times.at(-1) ?? 0) - (times[0] ?? 0);
    const turns = times.length;
    await Promise.all(all.map((upkeep) => upkeep.stop()));
    // Each for itself they would have ten turns in this time.
    expect(turns).toBeLessThanOrEqual((tookMs + lagMs) / (everyMs / 2) + 2);
  });

  it('removes ended records also when a queue cannot be tidied', async () => {
    const reached = Promise.withResolvers<void>();
    const removeEnded = async () => reached.resolve();
    const forgetEvents = () => Promise.reject(new Error('cannot be tidied'));
    const failing: QueueStore = { ...store, forgetEvents, records: { ...store.records, removeEnded } };
    const upkeep = startPruner({ store: failing, log: recording.log }, { everyMs: 50 });
    await reached.promise;
    await upkeep.stop();
  });
});

/** Names of the keys (Redis) or tables (PostgreSQL) of the queue's store that contain this text. */
function whereIn(stores: Record<string, string>, text: string): Promise<string[]> {
  const { REDIS_URL, DATABASE_URL = '' } = stores;
  return REDIS_URL === undefined ? tablesWith(DATABASE_URL, text) : keysWith(REDIS_URL, text);
}

async function keysWith(url: string, text: string): Promise<string[]> {
  const { redis, masters, prefix } = await openRedis(url);
  try {
    const found: string[] = [];
    for (const master of masters)
      for await (const keys of master.scanStream({ match: `${prefix}*`, count: 1000 }) as AsyncIterable<
        string[]
      >) {
        for (const key of keys) {
          const contents = JSON.stringify([key, await readKey(master, key)]);
          if (contents.includes(text)) found.push(key);
        }
      }
    return [...new Set(found)].sort();
  } finally {
    redis.disconnect();
  }
}

/** Read by the key's type, because a dump may be compressed. */
async function readKey(redis: Redis, key: string): Promise<unknown> {
  const type = await redis.type(key);
  switch (type) {
    case 'string':
      return redis.get(key);
    case 'hash':
      return redis.hgetall(key);
    case 'list':
      return redis.lrange(key, 0, -1);
    case 'set':
      return redis.smembers(key);
    case 'zset':
      return redis.zrange(key, '0', '-1');
    case 'stream':
      return redis.xrange(key, '-', '+');
    case 'none':
      return undefined;
    default:
      throw new Error(`a key of type ${type}`);
  }
}

async function tablesWith(url: string, text: string): Promise<string[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<{ name: string }>(`
      select format('%I.%I', table_schema, table_name) as name from information_schema.tables
      where table_type = 'BASE TABLE' and table_schema not in ('pg_catalog', 'information_schema') order by 1`);
    const found: string[] = [];
    for (const { name } of rows) {
      const query = `select from ${name} as it where strpos(it::text, $1) > 0 limit 1`;
      if ((await client.query(query, [text])).rowCount !== 0) found.push(name);
    }
    return found;
  } finally {
    await client.end();
  }
}
