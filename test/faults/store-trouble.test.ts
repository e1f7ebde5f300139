import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { expect, inject, vi } from 'vitest';
import { cancelSchema, topics } from '../../shared/protocol/messages.js';
import { authorization } from '../support/deployment.js';
import { hearPools } from '../support/opened-store.js';
import { patience } from '../support/patience.js';
import { openWireTo } from '../support/wire.js';
import { codeOf } from './support/balance.js';
import type { Books } from './support/books.js';
import { openConnectionKiller } from './support/connection-killer.js';
import { eventually, expectCodes, keepDoing, timeUntilOk } from './support/expectations.js';
import { fault } from './support/fault.js';
import { startOwnRedis } from './support/own-redis.js';

fault(
  {
    id: 'R5',
    timed: true,
    injected: 'an add that was executed, but whose answer never comes; no worker until its deadline',
  },
  async (books) => {
    const { stores, startApi, startWorker, simulator } = await books.start({ workers: 0 });
    const name = stores.REDIS_URL === undefined ? 'DATABASE_URL' : 'REDIS_URL';
    const wire = await openWireTo(stores[name] ?? '');
    books.release(wire.close);
    const { url } = await startApi({ [name]: wire.url });
    // Its answer comes on a connection that the add will find free.
    const unknown = await fetch(`${url}/chat/${randomUUID()}`, { headers: { Authorization: authorization } });
    expect(unknown.status).toBe(404);
    wire.holdAnswers();
    const askedAt = performance.now();
    const reply = await books.chat({ url });
    expect(codeOf(reply)).toBe('queue_unavailable');
    expect(reply.tookMs).toBeLessThan(3000);
    // Redis finds its removal right behind the add, if not at this moment; PostgreSQL keeps it until then.
    expect(await books.jobs.unfinished()).toBeLessThanOrEqual(1);
    await delay(6000 - (performance.now() - askedAt));
    await startWorker();
    await eventually(async () => expect(await books.jobs.unfinished()).toBe(0));
    expect(simulator.calls.lastId).toBe(0);
    wire.thaw();
    return `500 queue_unavailable after ${Math.round(reply.tookMs)} ms; the orphan is taken late and makes no call`;
  },
);

/** Slow enough to be cut before its end. */
const slow = 'sim-latency-500';

fault(
  {
    id: 'R9',
    injected: 'a silent Redis: an add is refused, and executed when it is back',
    stores: ['redis'],
  },
  async (books) => {
    const { stores, startApi, simulator } = await books.start();
    const wire = await openWireTo(stores.REDIS_URL ?? '');
    books.release(wire.close);
    const { url } = await startApi({ REDIS_URL: wire.url });
    expect((await books.chat({ url })).status).toBe(200);
    wire.freeze();
    const replies = await Promise.all(Array.from({ length: 5 }, () => books.chat({ url, model: slow })));
    expectCodes(replies, ['queue_unavailable']);
    wire.thaw();
    await expectNoCallAfter(books, 1);
    return `5 × 500 queue_unavailable, no call that was not cut; ${simulator.calls.lastId} calls in all`;
  },
);

fault(
  {
    id: 'R9',
    injected: 'PostgreSQL takes no job for a while: an add is refused, and executed later',
    stores: ['postgres'],
  },
  async (books) => {
    const { stores, simulator } = await books.start();
    expect((await books.chat()).status).toBe(200);
    const calledOff = await hearCancels(books);
    const client = new pg.Client({ connectionString: stores.DATABASE_URL });
    await client.connect();
    books.release(() => client.end());
    await client.query('begin; lock table bullmq.job in exclusive mode');
    const replies = await Promise.all(Array.from({ length: 3 }, () => books.chat({ model: slow })));
    expectCodes(replies, ['queue_unavailable']);
    // The pools hear of it when we do.
    await eventually(() => expect(calledOff).toHaveLength(3));
    await client.query('rollback');
    await expectNoCallAfter(books, 1);
    return `3 × 500 queue_unavailable, no call that was not cut; ${simulator.calls.lastId} calls in all`;
  },
);

/** Gives a list to which the ids are added of the jobs that are called off from now on. */
async function hearCancels(books: Books): Promise<string[]> {
  const { relay, close } = await hearPools(books.deployment.stores);
  books.release(close);
  const calledOff: string[] = [];
  await relay.subscribe(
    topics.cancel('openai'),
    cancelSchema,
    ({ jobIds }) => void calledOff.push(...jobIds),
  );
  return calledOff;
}

/**
 * Asks once more, which is answered after all that came before, and looks that nothing else was called to its end:
 * between an add that is executed late and its removal a worker may have taken the job, whose call is then cut.
 */
async function expectNoCallAfter(books: Books, calls: number): Promise<void> {
  await eventually(async () => expect((await books.chat()).status).toBe(200));
  await eventually(async () => expect(await books.jobs.unfinished()).toBe(0));
  const answered = books.deployment.simulator.calls.list().filter(({ model }) => model?.includes('@R9'));
  await Promise.all(answered.map(({ closed }) => closed));
  expect(answered.filter(({ clientClosedFirst }) => !clientClosedFirst).length).toBe(calls + 1);
}

const times = 20;

fault(
  {
    id: 'R6',
    injected: `all connections to the store killed ${times} times under load`,
    timeoutMs: 120_000,
    onTopologies: true,
    // An outcome that could not be stored within its lock is asked for once more.
    callsPerRequest: 2,
  },
  async (books) => {
    const { kind, topology } = inject('store');
    // Other cases run beside this one on the server of the run.
    const own = kind === 'redis' && !topology ? { store: (await startOwnRedis(books)).store } : {};
    const { stores } = await books.start({ workers: 2, ...own });
    const killer = await openConnectionKiller(stores);
    books.release(killer.close);
    const load = keepDoing(100, () => books.chat({ model: 'sim-latency-200' }));
    let killed = 0;
    for (let time = 0; time < times; time += 1) {
      // A slow machine needs longer than the pause for its new connections.
      await timeUntilOk(books);
      await delay(500);
      killed += await killer.killAll();
    }
    const replies = await Promise.all(load.stop());
    expect(killed).toBeGreaterThan(times);
    // A heartbeat can be lost as well; and a job that was taken by a worker that does not know it waits for the end of
    // its lock, perhaps twice, and requests behind such jobs may be refused at once.
    expectCodes(replies, ['ok', 'queue_unavailable', 'provider_unavailable', 'timeout', 'overloaded']);
    const well = await timeUntilOk(books);
    const ok = replies.filter(({ status }) => status === 200).length;
    expect(ok).toBeGreaterThan(replies.length / 2);
    return `${killed} connections killed, ${ok} of ${replies.length} answered 200, well after ${well} ms`;
  },
);

fault(
  { id: 'R7', timed: true, injected: 'Redis out of memory while jobs run, for 3 s', stores: ['redis'] },
  async (books) => {
    const redis = await startOwnRedis(books);
    const { url } = await books.start({ store: redis.store });
    const running = [1, 2, 3].map(() => books.ask({ model: 'sim-latency-1000' }));
    await Promise.all(running.map((asked) => asked.arrived()));
    await redis.configure('maxmemory', '1');
    const reply = await books.chat();
    expect(codeOf(reply)).toBe('queue_unavailable');
    expect(reply.tookMs).toBeLessThan(3000);
    const ready = (await fetch(`${url}/readyz`)).status;
    await delay(3000);
    await redis.configure('maxmemory', '0');
    const wellMs = await timeUntilOk(books);
    expectCodes(await Promise.all(running.map((asked) => asked.reply)), ['ok']);
    expect(wellMs).toBeLessThan(2000);
    return `500 queue_unavailable after ${Math.round(reply.tookMs)} ms (/readyz ${ready}); running jobs 200; well after ${wellMs} ms`;
  },
);

fault({ id: 'R8', injected: 'an eviction policy that may lose jobs', stores: ['redis'] }, async (books) => {
  const redis = await startOwnRedis(books);
  const { url } = await books.start({ store: redis.store });
  const readyz = async () => {
    const response = await fetch(`${url}/readyz`);
    const { checks } = (await response.json()) as { checks: { queue: { detail?: string } } };
    return { status: response.status, detail: checks.queue.detail };
  };
  await redis.configure('maxmemory-policy', 'allkeys-lru');
  const detail = await vi.waitFor(async () => {
    const bad = await readyz();
    expect(bad).toEqual({
      status: 503,
      detail: expect.stringMatching(/maxmemory-policy.*noeviction.*allkeys-lru/),
    });
    return bad.detail;
  }, patience);
  await redis.configure('maxmemory-policy', 'noeviction');
  await vi.waitFor(async () => expect((await readyz()).status).toBe(200), patience);
  return `/readyz 503: ${detail}; 200 when it is set right`;
});
