import { setTimeout as delay } from 'node:timers/promises';
import { expect, inject } from 'vitest';
import { withLag } from '../support/lateness.js';
import { eventually, expectCodes, keepDoing, timed, timeUntil, timeUntilOk } from './support/expectations.js';
import { fault } from './support/fault.js';
import { outage, startWithOutage } from './support/outage.js';
import { openStoreWire } from './support/store-wire.js';

const isRedis = inject('store').kind === 'redis';
/** PostgreSQL has to make every connection anew as a process of its own. */
const soonMs = isRedis ? 2000 : 8000;

fault({ id: 'R1', timed: true, injected: 'the store down at the start' }, async (books) => {
  const { wire, store } = await openStoreWire(books);
  const { url } = await books.start({ store, withoutStore: wire.cut });
  const get = (path: string) => fetch(`${url}${path}`);
  expect((await get('/livez')).status).toBe(200);
  const ready = await get('/readyz');
  expect(ready.status).toBe(503);
  expect(await ready.json()).toMatchObject({ status: 'failing', checks: { queue: { status: 'failing' } } });
  const { body, headers, tookMs } = await books.chat();
  expect(body).toMatchObject({ code: 'queue_unavailable', retryable: true });
  expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
  expect(tookMs).toBeLessThan(3000);
  expect((await get('/blogs')).status).toBe(isRedis ? 200 : 503);
  const front = await get('/');
  expect(front.status).toBe(200);
  expect(await front.json()).toMatchObject({ providers: { openai: 'unknown' } });

  await wire.mend();
  const { result: wellMs, lagMs } = await withLag(() =>
    timeUntil(async () => (await books.chat()).status === 200 && (await get('/readyz')).status === 200),
  );
  expect((await get('/blogs')).status).toBe(200);
  expect(wellMs).toBeLessThan(soonMs + lagMs);
  return `500 queue_unavailable after ${Math.round(tookMs)} ms, /readyz 503; all well ${wellMs} ms after it came`;
});

fault({ id: 'R1', timed: true, injected: 'the store falls silent, then SIGTERM to all' }, async (books) => {
  const { wire, store } = await openStoreWire(books);
  const { programs } = await books.start({ store });
  expect((await books.chat()).status).toBe(200);
  // A worker that has not heard that the end of its job is stored waits for the store as long as its grace.
  await eventually(async () => expect(await books.jobs.unfinished()).toBe(0));
  wire.freeze();
  const tookMs = await Promise.all(
    programs.map(async ({ pid, exitCode }) => {
      process.kill(pid, 'SIGTERM');
      const took = await timed(exitCode);
      expect(await exitCode).toBe(0);
      return took;
    }),
  );
  wire.thaw();
  expect(Math.max(...tookMs)).toBeLessThan(6000);
  return `exit 0 of all within ${Math.max(...tookMs)} ms`;
});

fault({ id: 'R3', timed: true, injected: 'the store away for 20 s, the workers idle' }, async (books) => {
  const { wire, store } = await openStoreWire(books);
  await books.start({ store });
  expect((await books.chat()).status).toBe(200);
  await wire.cut();
  const during = keepDoing(2000, () => books.chat());
  await delay(20_000);
  const refused = await Promise.all(during.stop());
  expectCodes(refused, ['queue_unavailable']);
  await wire.mend();
  const { result: wellMs, lagMs } = await withLag(() => timeUntilOk(books));
  expect(wellMs).toBeLessThan(soonMs + lagMs);
  const said = (words: string) => books.deployment.logs().split(words).length - 1;
  await eventually(() =>
    expect(said('the queue store is available again')).toBe(books.deployment.programs.length),
  );
  expect(said('the queue store is unavailable')).toBe(books.deployment.programs.length);
  return `${refused.length} refused meanwhile; serves ${wellMs} ms after it is back`;
});

/** Of a load. */
const everyMs = 100;
/** The outage is as long as the locks: a call whose outcome could not be stored meanwhile is made once more. */
const perOutage = 2;

fault(
  { id: 'R2', timed: true, injected: `${outage}, under load`, callsPerRequest: perOutage },
  async (books) => {
    const takeAway = await startWithOutage(books);
    const load = keepDoing(everyMs, () => books.chat({ model: 'sim-latency-200' }));
    await eventually(() => expect(books.deployment.simulator.calls.lastId).toBeGreaterThan(20));
    await takeAway();
    const wellMs = await timeUntilOk(books);
    // Heartbeats come again once the worker has its connections back, which takes longer on a slow machine.
    await eventually(async () => {
      for (let n = 0; n < 10; n += 1)
        expect((await books.chat({ model: 'sim-latency-200' })).status).toBe(200);
    });
    const replies = await Promise.all(load.stop());
    expectCodes(replies, ['ok', 'timeout', 'queue_unavailable', 'provider_unavailable']);
    // The last ones came when all was well again.
    expectCodes(replies.slice(-15), ['ok']);
    expect(wellMs).toBeLessThan(soonMs);
    return `serves ${wellMs} ms after it is back`;
  },
);
