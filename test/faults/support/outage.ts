import { setTimeout as delay } from 'node:timers/promises';
import { inject } from 'vitest';
import type { Books } from './books.js';
import { startOwnRedis } from './own-redis.js';
import { openStoreWire } from './store-wire.js';

const awayMs = 3000;

/** In words for the report. */
export const outage =
  inject('store').kind === 'redis'
    ? `Redis killed with -9, back after ${awayMs} ms`
    : `PostgreSQL out of reach for ${awayMs} ms`;

/** Starts two workers on a store of their own, and gives what takes that store away for three seconds. */
export async function startWithOutage(books: Books): Promise<() => Promise<void>> {
  const { begin, end, store } = await openOwnStore(books);
  await books.start({ store, workers: 2 });
  return async () => {
    await begin();
    await delay(awayMs);
    await end();
  };
}

async function openOwnStore(books: Books) {
  if (inject('store').kind === 'redis') {
    const { kill, start, store } = await startOwnRedis(books);
    return { begin: kill, end: start, store };
  }
  const { wire, store } = await openStoreWire(books);
  return { begin: wire.cut, end: wire.mend, store };
}
