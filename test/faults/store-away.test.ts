import { Redis } from 'ioredis';
import { expect } from 'vitest';
import { profiles } from '../support/profiles.js';
import type { StoreKind } from '../support/stores.js';
import { codeOf } from './support/balance.js';
import type { Books } from './support/books.js';
import { bothStores, catalogue } from './support/catalogue.js';
import { cutAgainAndAgain } from './support/cut-again.js';
import { eventually, expectCodes, keepDoing, linesWith, untilOk, untilWell } from './support/expectations.js';
import { type OutageStore, startOutageStore } from './support/outage.js';

/** Of the catalogue that runs. */
let outage: OutageStore;
const store = async (kind: StoreKind) => (outage = await startOutageStore(kind));

const readiness = async ({ deployment }: Books) => {
  const response = await fetch(`${deployment.url}/readyz`);
  const { checks } = (await response.json()) as { checks: { queue: { status: string; detail?: string } } };
  return { status: response.status, queue: checks.queue };
};

/** Sets a value of the Redis server. */
async function configure({ server }: Books, name: string, value: string): Promise<void> {
  const redis = new Redis(server.url);
  await redis.config('SET', name, value);
  redis.disconnect();
}

catalogue({ variables: profiles.plain, store, down: () => outage.begin() }, (add) => {
  add(
    'R1 the store down at the start → chats are refused, posts are read, and all is well once it comes',
    {},
    async (books) => {
      const get = (path: string) => fetch(`${books.deployment.url}${path}`);
      expect((await get('/livez')).status).toBe(200);
      expect(await readiness(books)).toMatchObject({ status: 503, queue: { status: 'failing' } });
      const { body, headers, tookMs } = await books.chat();
      expect(body).toMatchObject({ code: 'queue_unavailable', retryable: true });
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
      // Not at the deadline, after 120 s.
      expect(tookMs).toBeLessThan(20_000);
      expect((await get('/blogs')).status).toBe(200);
      const front = await get('/');
      expect([front.status, await front.json()]).toMatchObject([200, { providers: { openai: 'unknown' } }]);
      await outage.end();
      await untilOk(books);
      await eventually(async () => expect(await readiness(books)).toMatchObject({ status: 200 }));
    },
  );

  add(
    'R3 the store away while the workers idle → chats are refused meanwhile, and then each program is back',
    {},
    async (books) => {
      const said = (words: string) => linesWith(books, words).length;
      const { programs } = books.deployment;
      await outage.begin();
      await eventually(() => expect(said('the queue store is unavailable')).toBe(programs.length));
      expectCodes(await Promise.all([1, 2, 3].map(() => books.chat())), ['queue_unavailable']);
      await outage.end();
      await untilOk(books);
      await eventually(() => expect(said('the queue store is available again')).toBe(programs.length));
      expect(said('the queue store is unavailable')).toBe(programs.length);
    },
  );

  add(
    'R7 Redis out of memory while jobs run → others are refused, these are answered, and it recovers',
    {},
    async (books) => {
      const running = [1, 2, 3].map(() => books.ask({ model: 'sim-gate-0' }));
      await Promise.all(running.map((asked) => asked.arrived()));
      await configure(books, 'maxmemory', '1');
      expect(codeOf(await books.chat())).toBe('queue_unavailable');
      for (const { model } of running) books.deployment.simulator.open(model);
      await configure(books, 'maxmemory', '0');
      expectCodes(await Promise.all(running.map((asked) => asked.reply)), ['ok']);
      await untilOk(books);
    },
  );

  add(
    'R8 an eviction policy that may lose jobs → /readyz says so until it is set right',
    {},
    async (books) => {
      await configure(books, 'maxmemory-policy', 'allkeys-lru');
      const detail = expect.stringMatching(/maxmemory-policy.*noeviction.*allkeys-lru/);
      await eventually(async () =>
        expect(await readiness(books)).toMatchObject({ status: 503, queue: { detail } }),
      );
      await configure(books, 'maxmemory-policy', 'noeviction');
      await eventually(async () => expect(await readiness(books)).toMatchObject({ status: 200 }));
    },
  );
});

/** A job whose end or taking is lost is run again after its lock. */
const variables = { ...profiles.short, WORKER_LOCK_MS: '6000', CHAT_TIMEOUT_MS: '90000' };
const load = { model: 'sim-latency-200' };
const everyMs = 100;
/** So many jobs may run at once, and lose their locks. */
const atOnce = 20;

catalogue({ variables, workers: 2, store }, (add) => {
  add(
    'R6 all connections to the store cut, again and again → every request is answered',
    { callsPerRequest: 2, lost: atOnce },
    (books) => cutAgainAndAgain(books),
  );

  add(
    'R2 the store killed or cut off under load → no request is lost, and all is well once it is back',
    { callsPerRequest: 2, lost: atOnce, stores: bothStores },
    async (books) => {
      const { calls } = books.deployment.simulator;
      const begun = calls.lastId;
      const loading = keepDoing(everyMs, () => books.chat(load));
      await eventually(() => expect(calls.lastId).toBeGreaterThan(begun + 20));
      await outage.begin();
      books.mayLoseOpen();
      await eventually(async () => expect(codeOf(await books.chat(load))).toBe('queue_unavailable'));
      await outage.end();
      await untilWell(books, load);
      const replies = await Promise.all(loading.stop());
      expectCodes(replies, ['ok', 'timeout', 'queue_unavailable', 'provider_unavailable', 'overloaded']);
    },
  );

  add('R1 the store falls silent, then SIGTERM to all → each program exits with 0', {}, async (books) => {
    await untilOk(books);
    // A worker that has not heard that the end of its job is stored waits for the store as long as its grace.
    await eventually(async () => expect(await books.jobs.unfinished()).toBe(0));
    const { api, workers } = books.deployment;
    outage.freeze();
    const exits = [api, ...workers].map(({ pid, exitCode }) => {
      process.kill(pid, 'SIGTERM');
      return exitCode;
    });
    expect(await Promise.all(exits)).toEqual([0, 0, 0]);
    outage.thaw();
  });
});
