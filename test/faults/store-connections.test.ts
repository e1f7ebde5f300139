import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import pg from 'pg';
import { expect } from 'vitest';
import { profiles } from '../support/profiles.js';
import { codeOf } from './support/balance.js';
import type { Books } from './support/books.js';
import { bothStores, catalogue } from './support/catalogue.js';
import { openConnectionKiller } from './support/connection-killer.js';
import { expectCodes, keepDoing, untilOk, untilWell } from './support/expectations.js';
import { type OutageStore, startOutageStore } from './support/outage.js';
import { type Asked, providerOf } from './support/requests.js';
import type { AskedStream } from './support/streams.js';

let server: OutageStore;
const store = async (kind: OutageStore['kind']) => {
  server = await startOutageStore(kind);
  return server;
};

/** Longer than after which an API process that does not report counts as gone. */
const awayMs = 17_000;

catalogue({ variables: profiles.plain, store, workers: 2 }, (add) => {
  add(
    'T7 all connections to the store killed again and again, streams open → all are done',
    { stores: bothStores, callsPerRequest: 2 },
    async (books) => {
      const killer = await openConnectionKiller(books.deployment.stores);
      books.release(killer.close);
      const streams = await openStreams(books);
      let killed = 0;
      for (let time = 0; time < 20; time += 1) {
        killed += await killer.killAll();
        books.mayLoseOpen();
        await untilOk(books);
      }
      expect(killed).toBeGreaterThan(20);
      for (const stream of streams) stream.open();
      expectCodes(await Promise.all(streams.map(({ end }) => end)), ['ok']);
    },
  );

  add('D1 a store that falls silent, and a deadline of a second → timeout', {}, async (books) => {
    server.freeze();
    const reply = await books.chat({ headers: { Prefer: 'wait=1' } });
    server.thaw();
    expect(codeOf(reply)).toBe('timeout');
    expect(reply.tookMs).toBeLessThan(10_000);
    await untilWell(books);
  });

  add(
    'T7 F3 a store away for longer than an API process may be silent → chats and streams that run are not cut',
    {},
    async (books) => {
      const streams = await openStreams(books);
      const chats = Array.from({ length: 8 }, (_, n) =>
        books.ask({ provider: providerOf(n), model: 'sim-gate-0' }),
      );
      await Promise.all(chats.map((one) => one.arrived()));
      await server.begin();
      await delay(awayMs);
      await server.end();
      await untilWell(books);
      for (const one of [...streams, ...chats]) one.open();
      expectCodes(await Promise.all([...streams.map(({ end }) => end), ...chats.map(({ reply }) => reply)]), [
        'ok',
      ]);
    },
  );

  add(
    'T7 a store that loses all it has, streams open → done or a retryable end, and it serves again',
    { callsPerRequest: 2 },
    async (books) => {
      const streams = await openStreams(books);
      const redis = new Redis(books.deployment.stores.REDIS_URL ?? '');
      books.release(() => redis.disconnect());
      await redis.flushall();
      for (const stream of streams) stream.open();
      const ends = await Promise.all(streams.map(({ end }) => end));
      // A job that is run again too late for a call ends as `timeout` where the report that it was begun anew is lost.
      expectCodes(ends, ['ok', 'internal', 'timeout']);
      for (const { status, body } of ends) if (status !== 200) expect(body.retryable).toBe(true);
      await untilOk(books);
    },
  );

  add(
    'A4 the telling of replies lost, because the relay forgets its nodes → 200 all the same',
    { stores: bothStores },
    async (books) => {
      const forgetting = await forgetRelayNodes(books.deployment.stores);
      books.release(forgetting.close);
      // Again and again, because a node registers itself anew within two seconds.
      const wiping = keepDoing(20, forgetting.again);
      books.release(async () => void (await Promise.allSettled(wiping.stop())));
      // Spread over the second in which every record is looked at once.
      const asked = [150, 350, 550, 750, 950].map((ms) => books.ask({ model: `sim-latency-${ms}` }));
      const lateMs = await Promise.all(asked.map(lateness));
      // What gets the message is answered within a few milliseconds.
      expect(Math.max(...lateMs)).toBeGreaterThan(300);
    },
  );
});

async function openStreams(books: Books): Promise<AskedStream[]> {
  const streams = Array.from({ length: 20 }, (_, n) =>
    books.stream({ provider: providerOf(n), model: 'sim-gate-100' }),
  );
  await Promise.all(streams.map(({ begun }) => begun));
  return streams;
}

/** How long after the provider the API answers, in milliseconds. */
async function lateness(asked: Asked): Promise<number> {
  const call = await asked.arrived();
  expect(codeOf(await asked.reply)).toBe('ok');
  return Date.now() - (call.finishedAt ?? Number.NaN);
}

/** Removes the relay's registrations and its listeners in the store, so that messages are lost; `again` does it. */
async function forgetRelayNodes({ REDIS_URL, DATABASE_URL }: Record<string, string>) {
  if (REDIS_URL === undefined) {
    const client = new pg.Client({ connectionString: DATABASE_URL });
    await client.connect();
    return {
      again: async () => void (await client.query('DELETE FROM bullmq.relay_node')),
      close: () => client.end(),
    };
  }
  const redis = new Redis(REDIS_URL);
  return {
    again: async () => {
      // Without these no node is found; without the others every node registers anew at its next heartbeat.
      await redis.unlink('bull::relay:{quillgate}:subs', 'bull::relay:{quillgate}:nodes');
      await redis.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    },
    close: async () => redis.disconnect(),
  };
}
