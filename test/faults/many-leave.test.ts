import { expect, inject } from 'vitest';
import { providerIds } from '../../shared/contract.js';
import { ofEveryPool, providerOf } from './support/at-providers.js';
import type { Books } from './support/books.js';
import { eventually } from './support/expectations.js';
import { fault } from './support/fault.js';
import { type Footprint, footprintOf } from './support/footprint.js';
import { watchWarnings } from './support/warnings.js';

const isRedis = inject('store').kind === 'redis';
const rounds = isRedis ? 50 : 20;
const perRound = isRedis ? 200 : 100;
/** A fifth of them, in which the heaps have grown up. */
const early = rounds / 5;

fault(
  {
    id: 'A2',
    timed: true,
    injected: `${rounds * perRound} clients who leave, queued and running`,
    timeoutMs: 240_000,
  },
  async (books) => {
    const deployment = await books.start({
      variables: { ...ofEveryPool('CONCURRENCY', 10), CHAT_TIMEOUT_MS: '30000' },
    });
    const warningsSince = watchWarnings(deployment);
    const footprints: Footprint[] = [];
    for (let round = 0; round < rounds; round += 1) {
      await leaveTogether(books, round);
      footprints.push(footprintOf(deployment.programs));
    }
    const grown = growth(footprints);
    // The store's connections come and go.
    expect(grown.sockets).toBeLessThan(20);
    // A heap grows for some thousands of requests in any case.
    expect(grown.megabytes).toBeLessThan(120);
    await expectNothingCounted(books);
    expect(warningsSince()).toEqual([]);
    return `${grown.sockets} sockets and ${grown.megabytes} MiB more than after ${early} rounds; pools and admission count none`;
  },
);

async function leaveTogether(books: Books, round: number): Promise<void> {
  const { simulator } = books.deployment;
  const asked = Array.from({ length: perRound }, (_, n) =>
    books.ask({ model: 'sim-hang', provider: providerOf(n) }),
  );
  // Every other time nearly all have been added, else they leave in the middle of that.
  const share = round % 2 === 0 ? 0.9 : 0.3;
  await eventually(async () =>
    expect(await books.jobs.unfinished()).toBeGreaterThanOrEqual(share * perRound),
  );
  for (const one of asked) one.leave();
  await eventually(async () => {
    expect(await books.jobs.unfinished()).toBe(0);
    expect(simulator.calls.inFlight).toBe(0);
  });
}

function growth(footprints: readonly Footprint[]): Footprint {
  const [first, last] = [footprints[early - 1], footprints.at(-1)];
  if (first === undefined || last === undefined) throw new TypeError('too few rounds');
  return { sockets: last.sockets - first.sockets, megabytes: last.megabytes - first.megabytes };
}

/** Neither the pools nor the admission count jobs that are gone: a second would be too short for them. */
async function expectNothingCounted(books: Books): Promise<void> {
  const all = (call: object) =>
    Promise.all(providerIds.map(async (provider) => (await books.chat({ provider, ...call })).status));
  expect(await all({ model: 'sim-latency-300' })).toEqual([200, 200, 200, 200]);
  expect(await all({ headers: { Prefer: 'wait=1' } })).toEqual([200, 200, 200, 200]);
}
