import { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { LiveChats } from '../../../api/chat/live-chats.js';
import { JobRecords } from '../../../api/fleet-link/job-records.js';
import { ResultPoller } from '../../../api/fleet-link/result-poller.js';
import { parseConfig } from '../../../shared/config/config.js';
import { queueName } from '../../../shared/protocol/messages.js';
import { encodeStoredChat, type StoredChat } from '../../../shared/protocol/stored-chat.js';
import type { QueueStore } from '../../../shared/queue/queue-store.js';
import { openQueueStore } from '../../../shared/queue/stores/open.js';
import { attach } from '../../support/attached.js';
import { patienceMs } from '../../support/patience.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { type RedisProcess, startRedisProcess } from '../../support/redis-process.js';

const waiters = 5000;
const deadQueues = { passOn: async () => undefined, sweep: async () => undefined };

describe('poll', () => {
  let url: string;
  let server: RedisProcess;
  let store: QueueStore;
  beforeAll(async () => {
    // It counts what the server does, so nothing else may ask it.
    server = await startRedisProcess();
    url = `redis://127.0.0.1:${server.port}`;
    store = openQueueStore(parseConfig({ REDIS_URL: url }, 'config'), createRecordingLog().log);
    await store.whenReady(AbortSignal.timeout(patienceMs));
  });
  afterAll(async () => {
    await store?.close();
    await server?.stop();
  });

  it(`${waiters} chats -> one script for each 250, and two commands in it for each`, async () => {
    const { log } = createRecordingLog();
    const queue = store.createQueue(queueName('openai'));
    const chats = new LiveChats();
    const poller = new ResultPoller({
      ...{ chats, store, log, deadQueues },
      jobRecords: new JobRecords({ queueOf: () => queue, store }),
    });
    for (let n = 0; n < waiters; n += 1) attach(chats, `job-${n}`);
    const data = { turns: 'x'.repeat(2000) };
    const adds = chats.all().map(({ id }) => ({ name: 'chat', data, opts: { jobId: id } }));
    // In parts, each of which a slow machine also does within the connection's timeout.
    for (let start = 0; start < adds.length; start += 250)
      await queue.addBulk(adds.slice(start, start + 250));
    const redis = new Redis(url);
    const before = await callsOf(redis);
    expect(await poller.poll(chats.all())).toEqual([]);
    const after = await callsOf(redis);
    expect(after.scripts - before.scripts).toBe(waiters / 250);
    // The store itself asks for the time now and then.
    expect(after.commands - before.commands).toBeLessThan(2.1 * waiters);
    redis.disconnect();
    for (const { id } of chats.all()) chats.onOutcome(id, { kind: 'cancelled', queueMs: 0, providerMs: 0 });
    await queue.close();
  });
});

describe('pollDue', () => {
  const { log } = createRecordingLog();
  const chat: StoredChat = {
    ...{ v: 1, id: 'chat', owner: 'me', ownerId: 'me', provider: 'openai', requestHash: 'h' },
    ...{ createdAt: 0, deadline: 0, keptUntil: 0 },
  };
  const current = { provider: 'openai' as const, fallback: [{ provider: 'bedrock' as const }] };
  let chats: LiveChats;
  let lost: string[];
  /** The record of the stored chat. */
  let recorded: string | undefined;
  beforeEach(() => {
    vi.useFakeTimers({ now: 1_000_000 });
    chats = new LiveChats();
    [lost, recorded] = [[], undefined];
    chats.listen({ lost: ({ id }) => void lost.push(id) });
    return () => {
      for (const { id } of chats.all()) chats.onOutcome(id, { kind: 'cancelled', queueMs: 0, providerMs: 0 });
      vi.useRealTimers();
    };
  });

  /** Polls for chats whose jobs the store does not know. */
  const poll = async (): Promise<void> => {
    for (const each of chats.all()) each.added(Date.now());
    vi.advanceTimersByTime(200);
    const records = { readAll: async (keys: readonly string[]) => keys.map(() => recorded) };
    const unknown = { status: 'fulfilled', value: { state: 'unknown' } } as const;
    await new ResultPoller({
      ...{ chats, log, deadQueues },
      store: { now: Date.now, records } as unknown as QueueStore,
      jobRecords: { readAll: async (_, jobs) => jobs.map(() => unknown) },
    }).pollDue(0);
  };

  it('has a job added again that no other process can have passed on', async () => {
    attach(chats, 'not stored', { chat: { current } });
    attach(chats, 'no fallback', { chat: { expiresAt: 1_060_000 } });
    await poll();
    expect(lost).toEqual(['not stored', 'no fallback']);
  });

  it.each([
    ['is gone', undefined],
    ['names the attempt that is missing', chat],
  ])('has the job of a stored chat added again whose record %s', async (_, record) => {
    recorded = record && encodeStoredChat(record);
    attach(chats, 'chat', { chat: { current, expiresAt: 1_060_000 } });
    await poll();
    expect(lost).toEqual(['chat']);
  });

  it('has those who wait for a stored chat wait for the attempt that another process has begun', async () => {
    recorded = encodeStoredChat({ ...chat, current: { provider: 'bedrock', attempt: 2 } });
    const request = attach(chats, 'chat', { chat: { current, expiresAt: 1_060_000 } });
    await poll();
    expect(request.chat.job).toMatchObject({ provider: 'bedrock', attempt: 2, isStored: true });
    expect(lost).toEqual([]);
  });

  it('leaves a chat alone whose record cannot be read', async () => {
    recorded = '{"v":5}';
    attach(chats, 'chat', { chat: { current, expiresAt: 1_060_000 } });
    await poll();
    await poll();
    expect(lost).toEqual([]);
  });
});

/** How many scripts clients have had the server run so far, and how many commands it has executed in all. */
async function callsOf(redis: Redis): Promise<{ scripts: number; commands: number }> {
  const calls = [...(await redis.info('commandstats')).matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)];
  const sum = (name: RegExp) =>
    calls.reduce((all, [, of = '', n]) => all + (name.test(of) ? Number(n) : 0), 0);
  return { scripts: sum(/^eval/), commands: sum(/^/) };
}
