import { expect } from 'vitest';
import { providerIds } from '../../shared/contract.js';
import type { ChatCall, ChatReply } from '../support/deployment.js';
import { percentile, withLag } from '../support/lateness.js';
import { ofEveryPool } from './support/at-providers.js';
import { codeOf } from './support/balance.js';
import type { Books } from './support/books.js';
import { fault } from './support/fault.js';
import { openStoreWire } from './support/store-wire.js';

/** Calls at every provider at once; the pools have room for more, so that none is refused. */
const each = 6;
const wait = (seconds: number) => ({ Prefer: `wait=${seconds}` });
/** An answer comes this long after its deadline at most, in 99 of 100 cases. */
const lateMs = 100;
/** Each takes a second. */
const times = 5;

for (const model of ['sim-hang', 'sim-hang-body', 'sim-drip-50']) {
  fault(
    {
      id: 'D1',
      timed: true,
      injected: `${model} at every provider, and a deadline of 1 s`,
      timeoutMs: 90_000,
    },
    async (books) => {
      await startWarm(books);
      const late = await punctuality(books, times, callsTo(each, { model, headers: wait(1) }));
      // The calls were cut at the caller's deadline, which says nothing to the breaker.
      const after = await chatAll(books, callsTo(2, { headers: wait(5) }));
      expect(after.map(codeOf)).toEqual(after.map(() => 'ok'));
      return `answered ${late}; the breakers stay closed`;
    },
  );
}

fault(
  { id: 'D1', timed: true, injected: 'a slow queue, and a deadline of 1 s', timeoutMs: 90_000 },
  async (books) => {
    await books.start({ variables: ofEveryPool('CONCURRENCY', each) });
    // Calls that are soon answered: others come in behind slow ones.
    await chatAll(books, callsTo(1, {}));
    const { calls } = books.deployment.simulator;
    const before = calls.lastId;
    const blocking = chatAll(books, callsTo(each, { model: 'sim-hang', headers: wait(5) }));
    await calls.waitFor(({ id }) => id === before + providerIds.length * each);
    const late = await punctuality(books, 3, callsTo(1, { headers: wait(1) }));
    expect((await blocking).map(codeOf)).toEqual(Array(providerIds.length * each).fill('timeout'));
    expect(calls.lastId).toBe(before + providerIds.length * each);
    return `answered ${late}, and none was called`;
  },
);

fault({ id: 'D1', timed: true, injected: 'the store falls silent, and a deadline of 1 s' }, async (books) => {
  const { wire, store } = await openStoreWire(books);
  await books.start({ store });
  expect((await books.chat()).status).toBe(200);
  wire.freeze();
  const reply = await books.chat({ headers: wait(1) });
  wire.thaw();
  expect(codeOf(reply)).toBe('timeout');
  expect(reply.tookMs).toBeLessThan(1150);
  return `answered ${Math.round(reply.tookMs - 1000)} ms after`;
});

/** Each within two seconds of the store's, which is right. */
const skews = [
  { api: 1800, worker: -1800 },
  { api: -1800, worker: 1800 },
  { api: 1800, worker: 1800 },
  { api: -1800, worker: -1800 },
];

fault(
  {
    id: 'D2',
    timed: true,
    injected: 'clocks of API, worker and store 1.8 s apart in all directions',
    timeoutMs: 120_000,
  },
  async (books) => {
    const { startApi, startWorker, simulator } = await books.start({ workers: 0 });
    const overrun: number[] = [];
    for (const { api, worker } of skews) {
      const [{ url, child: gateway }, pool] = await Promise.all([
        startApi({ NODE_OPTIONS: clockAhead(api) }),
        startWorker({ NODE_OPTIONS: clockAhead(worker) }),
      ]);
      // The first call of an SDK takes longer.
      expect((await books.chat({ url })).status).toBe(200);
      const answered = await books.chat({ url, model: 'sim-latency-300', headers: wait(2) });
      expect(codeOf(answered)).toBe('ok');
      expect(queuedMs(answered)).toBeGreaterThanOrEqual(0);
      expect(queuedMs(answered)).toBeLessThan(1000);
      const startedAt = Date.now();
      const asked = books.ask({ url, model: 'sim-hang', headers: wait(1) });
      const { result: late, lagMs } = await withLag(async () => {
        const call = await asked.arrived();
        await call.closed;
        return Date.now() - startedAt - 1000;
      });
      expect(late).toBeLessThan(200 + lagMs);
      expect(codeOf(await asked.reply)).toBe('timeout');
      overrun.push(late);
      await Promise.all([gateway.stop({ graceMs: 10_000 }), pool.stop({ graceMs: 10_000 })]);
    }
    expect(simulator.calls.inFlight).toBe(0);
    return `wait=2 answered 200 by all four; calls ended at most ${Math.max(...overrun)} ms after a deadline of 1 s`;
  },
);

/** Node options with which a program's clock is ahead by this many milliseconds. */
const clockAhead = (ms: number): string =>
  `--import=data:text/javascript,${encodeURIComponent(`const now = Date.now; Date.now = () => now() + ${ms};`)}`;

const queuedMs = ({ headers }: ChatReply): number =>
  Number(/queue;dur=(-?[\d.]+)/.exec(headers.get('server-timing') ?? '')?.[1]);

const callsTo = (count: number, call: ChatCall): ChatCall[] =>
  providerIds.flatMap((provider) => Array.from({ length: count }, () => ({ provider, ...call })));

const chatAll = (books: Books, calls: ChatCall[]): Promise<ChatReply[]> =>
  Promise.all(calls.map((call) => books.chat(call)));

/** The first call of an SDK takes longer than all that follow, and so does the first that is cut. */
async function startWarm(books: Books): Promise<void> {
  await books.start();
  await chatAll(books, callsTo(1, { model: 'sim-hang', headers: wait(1) }));
}

/** Asks some times over, with a deadline of a second, and looks at the lateness of all answers together. */
async function punctuality(books: Books, rounds: number, calls: ChatCall[]): Promise<string> {
  const { result, lagMs } = await withLag(async () => {
    const late: number[] = [];
    for (let round = 0; round < rounds; round += 1) {
      const replies = await chatAll(books, calls);
      expect(replies.map(codeOf)).toEqual(replies.map(() => 'timeout'));
      late.push(...replies.map(({ tookMs }) => tookMs - 1000));
    }
    return late;
  });
  const p99 = percentile(result, 0.99);
  expect(p99).toBeLessThan(lateMs + lagMs);
  return `${Math.round(p99)} ms after it (p99 of ${result.length})`;
}
