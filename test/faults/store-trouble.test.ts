import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { expect } from 'vitest';
import { cancelSchema, topics } from '../../shared/protocol/messages.js';
import { authorization } from '../support/deployment.js';
import { hearPools } from '../support/opened-store.js';
import { profiles } from '../support/profiles.js';
import { openWireTo } from '../support/wire.js';
import type { Books } from './support/books.js';
import { bothStores, catalogue } from './support/catalogue.js';
import { eventually, expectCodes, keepDoing, untilOk, untilWell } from './support/expectations.js';

/** Each case starts the worker it needs; a job whose taking is lost is run again after its lock. */
const variables = { ...profiles.plain, WORKER_LOCK_MS: '6000', WORKER_STALLED_CHECK_MS: '1000' };

/** So many jobs may run at once, and lose their locks. */
const atOnce = 20;

/** A wire to the queue's store, and what leads a program through it. */
async function openWireOf({ deployment: { stores }, release }: Books) {
  const name = stores.REDIS_URL === undefined ? 'DATABASE_URL' : 'REDIS_URL';
  const wire = await openWireTo(stores[name] ?? '');
  release(wire.close);
  return { wire, variables: { [name]: wire.url } };
}

catalogue({ variables, workers: 0 }, (add) => {
  const orphanMs = 10_000;

  add(
    'R5 an add that is executed, but whose answer never comes → refused, and no call after its deadline',
    { stores: bothStores },
    async (books) => {
      const { startApi, startWorker } = books.deployment;
      const { wire, variables: through } = await openWireOf(books);
      const { url } = await startApi(through);
      // Its answer comes on a connection that the add will find free.
      const unknown = await fetch(`${url}/chat/${randomUUID()}`, {
        headers: { Authorization: authorization },
      });
      expect(unknown.status).toBe(404);
      wire.holdAnswers();
      const asked = books.ask({ url, headers: { Prefer: `wait=${orphanMs / 1000}` } });
      const isOver = delay(orphanMs);
      expectCodes([await asked.reply], ['queue_unavailable']);
      // Redis finds its removal right behind the add, if not at this moment; PostgreSQL keeps it until then.
      expect(await books.jobs.unfinished()).toBeLessThanOrEqual(1);
      await isOver;
      await startWorker();
      await eventually(async () => expect(await books.jobs.unfinished()).toBe(0));
      expect(books.deployment.simulator.calls.list({ model: asked.model })).toEqual([]);
      wire.thaw();
    },
  );

  add(
    'R9 a silent Redis, which executes adds when it is back → they are refused, and no call is made to its end',
    {},
    async (books) => {
      await books.deployment.startWorker();
      const { wire, variables: through } = await openWireOf(books);
      const { url } = await books.deployment.startApi(through);
      await untilOk(books, { url });
      wire.freeze();
      const asked = Array.from({ length: 5 }, () => books.ask({ url, model: 'sim-gate-0' }));
      expectCodes(await Promise.all(asked.map(({ reply }) => reply)), ['queue_unavailable']);
      wire.thaw();
      await expectCallsCut(books, asked);
    },
  );

  add(
    'R9 a PostgreSQL that takes no job for a while → chats are refused, and no call is made to its end',
    { stores: ['postgres'] },
    async (books) => {
      await books.deployment.startWorker();
      await untilOk(books);
      const calledOff = await hearCancels(books);
      const client = new pg.Client({ connectionString: books.deployment.stores.DATABASE_URL });
      await client.connect();
      books.release(() => client.end());
      await client.query('begin; lock table bullmq.job in exclusive mode');
      const asked = Array.from({ length: 3 }, () => books.ask({ model: 'sim-gate-0' }));
      expectCodes(await Promise.all(asked.map(({ reply }) => reply)), ['queue_unavailable']);
      // The pools hear of it when we do.
      await eventually(() => expect(calledOff).toHaveLength(3));
      await client.query('rollback');
      await expectCallsCut(books, asked);
    },
  );

  for (const program of ['worker', 'API'] as const)
    add(
      `R10 the connections of the ${program} to a healthy store die without a word, under load → they are replaced`,
      // A call whose outcome could not be stored within its lock is made once more.
      { callsPerRequest: 2, lost: atOnce, ...(program === 'worker' && { stores: bothStores }) },
      async (books) => {
        const { wire, variables: through } = await openWireOf(books);
        await books.deployment.startWorker(program === 'worker' ? through : {});
        const { url } = program === 'API' ? await books.deployment.startApi(through) : books.deployment;
        await untilWell(books, { url });
        const load = keepDoing(100, () => books.chat({ url }));
        await untilWell(books, { url });
        wire.swallow();
        if (program === 'worker') books.mayLoseOpen();
        await untilWell(books, { url });
        expectCodes(await Promise.all(load.stop()), [
          'ok',
          'timeout',
          'queue_unavailable',
          'provider_unavailable',
        ]);
        await expectDeltas(books, url);
      },
    );
});

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
 * Asks once more, which is answered after all that came before. Between an add that is executed late and its removal a
 * worker may have taken the job: its call is then cut, for its gate is not opened.
 */
async function expectCallsCut(books: Books, asked: readonly { model: string }[]): Promise<void> {
  await untilOk(books);
  await eventually(async () => expect(await books.jobs.unfinished()).toBe(0));
  const { calls } = books.deployment.simulator;
  const made = asked.flatMap(({ model }) => calls.list({ model }));
  await Promise.all(made.map(({ closed }) => closed));
  expect(made.filter(({ clientClosedFirst }) => !clientClosedFirst)).toEqual([]);
}

/** A chat without a record comes by the relay alone, so that the relay's connections too have to be new. */
async function expectDeltas(books: Books, url: string): Promise<void> {
  const stream = books.stream({ url, model: 'sim-gate-1' });
  await stream.begun;
  books.deployment.simulator.open(stream.model);
  expect(await stream.end).toMatchObject({ status: 200, begun: true });
}
