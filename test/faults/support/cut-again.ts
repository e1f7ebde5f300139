import { expect } from 'vitest';
import type { Books } from './books.js';
import { openConnectionKiller } from './connection-killer.js';
import { expectCodes, keepDoing, untilOk } from './expectations.js';

const times = 20;

/** R6: ends all connections to the deployment's store under load, which has to be its own. */
export async function cutAgainAndAgain(books: Books): Promise<void> {
  const killer = await openConnectionKiller(books.deployment.stores);
  books.release(killer.close);
  const load = keepDoing(100, () => books.chat({ model: 'sim-latency-200' }));
  let killed = 0;
  for (let time = 0; time < times; time += 1) {
    await untilOk(books);
    killed += await killer.killAll();
    books.mayLoseOpen();
  }
  const replies = await Promise.all(load.stop());
  expect(killed).toBeGreaterThan(times);
  // A heartbeat can be lost as well. A job whose worker never heard that it took it waits for the end of its lock,
  // perhaps twice, and requests behind such jobs may be refused at once.
  expectCodes(replies, ['ok', 'queue_unavailable', 'provider_unavailable', 'timeout', 'overloaded']);
  await untilOk(books);
}
