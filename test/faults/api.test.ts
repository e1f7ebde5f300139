import { once } from 'node:events';
import { connect } from 'node:net';
import { Redis } from 'ioredis';
import pg from 'pg';
import { expect } from 'vitest';
import { providerIds } from '../../shared/contract.js';
import { withLag } from '../support/lateness.js';
import { codeOf } from './support/balance.js';
import { expectCodes, keepDoing, timed } from './support/expectations.js';
import { fault } from './support/fault.js';
import type { Asked } from './support/requests.js';

const lost = 5;

fault(
  { id: 'A4', timed: true, injected: 'the telling of replies lost: the relay forgets its nodes' },
  async (books) => {
    const { stores } = await books.start();
    const forgetting = await forgetRelayNodes(stores);
    books.release(forgetting.close);
    const { result: lateMs, lagMs } = await withLag(async () => {
      // Again and again, because a node registers itself anew within two seconds.
      const wiping = keepDoing(20, forgetting.again);
      // Spread over the second in which every record is looked at once.
      const asked = Array.from({ length: lost }, (_, n) =>
        books.ask({ model: `sim-latency-${150 + 200 * n}` }),
      );
      const late = await Promise.all(asked.map(lateness));
      await Promise.all(wiping.stop());
      return late;
    });
    expect(Math.max(...lateMs)).toBeLessThan(1200 + lagMs);
    // A request that gets the message has its answer within a few milliseconds.
    expect(Math.max(...lateMs)).toBeGreaterThan(300);
    return `200, ${lateMs.join(', ')} ms after the provider's answers`;
  },
);

/** How long after the provider the API answers, in milliseconds. */
async function lateness(asked: Asked): Promise<number> {
  const call = await asked.arrived();
  expect(codeOf(await asked.reply)).toBe('ok');
  return Date.now() - (call.finishedAt ?? Number.NaN);
}

fault(
  { id: 'A5', timed: true, stores: ['redis'], injected: 'SIGTERM to the API with requests in flight' },
  async (books) => {
    const { api, url } = await books.start();
    const asked = [1, 2, 3].map(() => books.ask({ model: 'sim-latency-1500' }));
    await Promise.all(asked.map((one) => one.arrived()));
    process.kill(api.pid, 'SIGTERM');
    const ready = await untilDraining(url);
    expect(ready).toMatchObject({ status: 503, body: { status: 'draining' } });
    const replies = await Promise.all(asked.map(({ reply }) => reply));
    expect(replies.map(codeOf)).toEqual(['ok', 'ok', 'ok']);
    expect(await api.exitCode).toBe(0);
    return '/readyz 503 draining while three requests are in flight, then 200 for each of them, exit 0';
  },
);

fault(
  {
    id: 'A5',
    timed: true,
    stores: ['redis'],
    injected: 'SIGTERM to the API with a request that outlasts the grace',
  },
  async (books) => {
    const { api } = await books.start({ variables: { SHUTDOWN_GRACE_MS: '1000' } });
    const silent = connect(api.port, '127.0.0.1');
    await once(silent, 'connect');
    const asked = books.ask({ model: 'sim-hang' });
    await asked.arrived();
    process.kill(api.pid, 'SIGTERM');
    const tookMs = await timed(api.exitCode);
    expect(codeOf(await asked.reply)).toBe('internal');
    expect(await api.exitCode).toBe(0);
    expect(tookMs).toBeLessThan(4000);
    return `500 internal, retryable, exit 0 after ${tookMs} ms, whoever is connected`;
  },
);

const graceMs = 1000;

fault(
  {
    id: 'A5',
    injected: 'SIGTERM to the API with chats and streams, stored and not, that outlast the grace',
  },
  async (books) => {
    const variables = {
      CHAT_TIMEOUT_MS: '30000',
      SHUTDOWN_GRACE_MS: `${graceMs}`,
      STREAM_GRACE_MS: `${graceMs / 2}`,
    };
    const { api, startApi } = await books.start({ variables });
    const { url } = await startApi();
    // Whether they are cancelled or not, their calls have ended long before any time-out.
    const asked = [
      ...providerIds.map((provider) => books.ask({ provider, model: 'sim-latency-6000' })),
      ...providerIds.map((provider) => books.stream({ provider, model: 'sim-stream-300-20' })),
    ];
    const chat = { model: 'sim-latency-2500@A5', headers: { 'Idempotency-Key': 'A5-chat' } };
    const stream = { model: 'sim-stream-125-20@A5', headers: { 'Idempotency-Key': 'A5-stream' } };
    const stored = [books.ask(chat), books.stream(stream)];
    const calls = await Promise.all(asked.map((one) => one.arrived()));
    const storedCalls = await Promise.all(stored.map((one) => one.arrived()));
    process.kill(api.pid, 'SIGTERM');
    const ends = [...asked, ...stored].map((one) => ('end' in one ? one.end : one.reply));
    expectCodes(await Promise.all(ends), ['internal']);
    expect(await api.exitCode).toBe(0);
    await Promise.all([...calls, ...storedCalls].map(({ closed }) => closed));
    expect(calls.map(({ clientClosedFirst }) => clientClosedFirst)).toEqual(calls.map(() => true));
    expect(storedCalls.map(({ clientClosedFirst }) => clientClosedFirst)).toEqual([false, false]);
    expectCodes([await books.chat({ ...chat, url }), await books.stream({ ...stream, url }).end], ['ok']);
    return `${calls.length} calls cut that nobody could have read; the stored ones went on, and are answered by another API`;
  },
);

/** The first answer that is not ok; a signal takes a moment to arrive. */
async function untilDraining(url: string): Promise<{ status: number; body: unknown }> {
  for (;;) {
    const response = await fetch(`${url}/readyz`, { headers: { Connection: 'close' } });
    const body = await response.json();
    if (response.status !== 200) return { status: response.status, body };
  }
}

/** Removes the relay's registrations and its listeners in the store, so that messages are lost; `again` does it. */
async function forgetRelayNodes({ REDIS_URL, DATABASE_URL }: Record<string, string>) {
  if (REDIS_URL === undefined) return inPostgres(DATABASE_URL ?? '');
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

async function inPostgres(url: string) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return {
    again: async () => void (await client.query('DELETE FROM bullmq.relay_node')),
    close: () => client.end(),
  };
}
