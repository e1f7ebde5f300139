import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import { providerOf } from './support/at-providers.js';
import { codeOf } from './support/balance.js';
import type { Books } from './support/books.js';
import { openConnectionKiller } from './support/connection-killer.js';
import { expectCodes, timeUntil } from './support/expectations.js';
import { fault } from './support/fault.js';
import { outage, startWithOutage } from './support/outage.js';
import { startOwnRedis } from './support/own-redis.js';
import type { AskedStream } from './support/streams.js';

const open = 20;
const openStreams = (books: Books, model: string): AskedStream[] =>
  Array.from({ length: open }, (_, n) => books.stream({ provider: providerOf(n), model }));

fault(
  { timed: true, id: 'T7', callsPerRequest: 2, injected: `${outage}, ${open} streams open` },
  async (books) => {
    const takeAway = await startWithOutage(books);
    const asked = openStreams(books, 'sim-stream-300-20');
    await Promise.all(asked.map(({ begun }) => begun));
    await takeAway();
    return endsAndRecovery(books, asked);
  },
);

fault(
  {
    id: 'T7',
    injected: `Redis loses all it has, ${open} streams open`,
    stores: ['redis'],
    callsPerRequest: 2,
  },
  async (books) => {
    const redis = await startOwnRedis(books);
    await books.start({ store: redis.store, workers: 2 });
    const asked = openStreams(books, 'sim-stream-250-20');
    await Promise.all(asked.map(({ begun }) => begun));
    await redis.command('FLUSHALL');
    return endsAndRecovery(books, asked);
  },
);

async function endsAndRecovery(books: Books, asked: readonly AskedStream[]): Promise<string> {
  const ends = await endsOf(asked);
  const wellMs = await timeUntil(async () => codeOf(await books.stream().end) === 'ok');
  return `${ends}; serves ${wellMs} ms after that`;
}

const times = 20;

fault(
  {
    id: 'T7',
    injected: `all connections to the store killed ${times} times, ${open} streams open`,
    callsPerRequest: 2,
  },
  async (books) => {
    const { stores } = await books.start({ workers: 2 });
    const killer = await openConnectionKiller(stores);
    books.release(killer.close);
    const asked = openStreams(books, 'sim-stream-400-20');
    await Promise.all(asked.map(({ begun }) => begun));
    for (let time = 0; time < times; time += 1) {
      await delay(500);
      await killer.killAll();
    }
    return endsOf(asked);
  },
);

/** The streams that were sent to their ends; a job whose lock was lost meanwhile writes another text. */
async function endsOf(asked: readonly AskedStream[]): Promise<string> {
  const ends = await Promise.all(asked.map(({ end }) => end));
  // A job that is run again so late that it makes no call ends as `timeout`, where the report that it was begun anew is
  // lost.
  expectCodes(ends, ['ok', 'internal', 'timeout']);
  const whole = ends.filter((end) => codeOf(end) === 'ok').length;
  for (const { body, status } of ends) if (status !== 200) expect(body.retryable).toBe(true);
  return `${whole} of ${asked.length} done, the others error, retryable`;
}
