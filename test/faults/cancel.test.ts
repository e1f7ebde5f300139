import { expect, inject } from 'vitest';
import type { Call } from '../../dev/simulator/call.js';
import { percentile, withLag } from '../support/lateness.js';
import { providerOf } from './support/at-providers.js';
import type { Books } from './support/books.js';
import { eventually } from './support/expectations.js';
import { fault } from './support/fault.js';
import type { Asked } from './support/requests.js';
import { watchWarnings } from './support/warnings.js';

const isRedis = inject('store').kind === 'redis';
/** This long after a caller has left, in 99 of 100 cases, its call is cut. The relay of PostgreSQL is slower. */
const cutWithinMs = (isRedis ? 250 : 500) * inject('slowness');

fault(
  {
    id: 'A2',
    timed: true,
    injected: '100 clients who leave while their calls run, one after the other',
    timeoutMs: 90_000,
  },
  async (books) => {
    const warningsSince = watchWarnings(await books.start({ workers: 2 }));
    const { result, lagMs } = await withLag(async () => {
      const took: number[] = [];
      for (let n = 0; n < 100; n += 1) {
        const asked = books.ask({ model: 'sim-hang', provider: providerOf(n) });
        const running = await asked.arrived();
        took.push(await closedAfter(running, asked.leave()));
      }
      return took;
    });
    const p99 = percentile(result, 0.99);
    expect(p99).toBeLessThan(cutWithinMs + lagMs);
    expect(warningsSince()).toEqual([]);
    return `the call's connection closed ${p99} ms after (p99; ${Math.round(lagMs)} ms allowed for the machine)`;
  },
);

const inTheMiddle: [id: string, of: string, ask: (books: Books, n: number) => Leaving][] = [
  ['A2', 'the body', (books, n) => books.ask({ model: 'sim-hang-body', provider: providerOf(n) })],
  // The deltas go over the same relay as the cancels.
  [
    'T6',
    'their streams',
    (books, n) => books.stream({ model: 'sim-stream-900-20', provider: providerOf(n) }),
  ],
];
/** A request whose caller leaves; `begun` resolves at the first delta of a stream. */
type Leaving = Pick<Asked, 'arrived' | 'leave'> & { begun?: Promise<void> };

for (const [id, of, ask] of inTheMiddle)
  fault(
    { id, timed: true, injected: `20 clients who leave at once in the middle of ${of}` },
    async (books) => {
      await books.start({ workers: 2 });
      const asked = Array.from({ length: 20 }, (_, n) => ask(books, n));
      await Promise.all(asked.map(({ begun }) => begun));
      const running = await Promise.all(asked.map((one) => one.arrived()));
      const { result, lagMs } = await withLag(() =>
        Promise.all(asked.map((one, n) => closedAfter(running[n] as Call, one.leave()))),
      );
      const p99 = percentile(result, 0.99);
      expect(p99).toBeLessThan(cutWithinMs + lagMs);
      return `the calls' connections closed ${p99} ms after (p99)`;
    },
  );

fault(
  { id: 'A2', timed: true, injected: '20 clients who leave while their jobs are queued' },
  async (books) => {
    const { simulator } = await books.start({
      variables: { OPENAI_CONCURRENCY: '1', CHAT_TIMEOUT_MS: '30000' },
    });
    const first = books.ask({ model: 'sim-hang' });
    const running = await first.arrived();
    const queued = Array.from({ length: 20 }, () => books.ask());
    await eventually(async () => expect(await books.jobs.unfinished()).toBe(21));
    for (const one of queued) one.leave();
    await eventually(async () => expect(await books.jobs.unfinished()).toBe(1));
    await closedAfter(running, first.leave());
    const last = books.ask();
    expect((await last.reply).status).toBe(200);
    expect(simulator.calls.list({ since: running.id }).map(({ model }) => model)).toEqual([last.model]);
    return 'none of the queued jobs was ever called';
  },
);

fault(
  { id: 'A2', timed: true, injected: 'a client leaves, and the worker that runs its call dies deaf' },
  async (books) => {
    const { startWorker } = await books.start({ variables: { CHAT_TIMEOUT_MS: '30000' } });
    const asked = books.ask({ model: 'sim-hang' });
    await asked.arrived();
    const frozen = await books.jobs.workerOf('openai');
    // It hears of nothing any more.
    process.kill(frozen.pid, 'SIGSTOP');
    asked.leave();
    const running = async () => (await books.jobs.queue('openai').getActive())[0];
    await eventually(async () => expect((await running())?.data.deadline).toBe(0));
    await books.kill(frozen);
    await startWorker();
    await eventually(async () => expect(await books.jobs.unfinished()).toBe(0));
    return 'the worker that takes over makes no call';
  },
);

/** How long after the caller's leaving the provider saw the connection close, in milliseconds. */
async function closedAfter(running: Call, leftAt: number): Promise<number> {
  await running.closed;
  expect(running.clientClosedFirst).toBe(true);
  return (running.closedAt ?? Number.NaN) - leftAt;
}
