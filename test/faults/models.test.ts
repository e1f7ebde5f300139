import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import type { ChatReply } from '../support/deployment.js';
import { codeOf } from './support/balance.js';
import type { Books } from './support/books.js';
import { tookMsOf } from './support/expectations.js';
import { fault } from './support/fault.js';
import { paced } from './support/pace.js';

const slowest = (replies: ChatReply[]) => Math.round(tookMsOf(replies, 1));

/** Asks for a model of the same provider that is well, as long as something else goes on. */
async function askMeanwhile(books: Books, other: Promise<unknown>): Promise<ChatReply[]> {
  const replies: ChatReply[] = [];
  let isOver = false;
  const end = other.finally(() => {
    isOver = true;
  });
  while (!isOver) replies.push(await books.chat({ model: 'sim-latency-50' }));
  await end;
  return replies;
}

fault(
  {
    id: 'P17',
    injected: 'a model that fails every call, beside one that is well',
    callsPerRequest: 2,
  },
  async (books) => {
    const { simulator } = await books.start({ variables: { BREAKER_RESET_MS: '2000' } });
    const model = 'sim-status-529@P17';
    const failing = async () => {
      while (codeOf(await books.chat({ model })) !== 'provider_unavailable');
      const refused = await Promise.all(Array.from({ length: 20 }, () => books.chat({ model })));
      expect(refused.filter((reply) => codeOf(reply) === 'provider_unavailable').length).toBeGreaterThan(15);
    };
    const well = await askMeanwhile(books, failing());
    expect(well.filter(({ status }) => status !== 200)).toEqual([]);
    const calls = simulator.calls.list({ model }).length;
    expect(calls).toBeLessThanOrEqual(20);
    return `refused after ${calls} calls; ${well.length} × 200 of the other model meanwhile, the slowest in ${slowest(well)} ms`;
  },
);

fault(
  { id: 'P17', injected: 'a model that hangs, at all places, beside one that is well' },
  async (books) => {
    const { simulator } = await books.start({
      variables: { OPENAI_CONCURRENCY: '4', OPENAI_TIMEOUT_MS: '2000', BREAKER_RESET_MS: '60000' },
    });
    await Promise.all(Array.from({ length: 6 }, () => books.chat({ model: 'sim-hang@P17' })));
    // Some more hang since before the breaker opened, or wait for it in vain; they have no place any more.
    const hanging = Array.from({ length: 4 }, () => books.ask({ model: 'sim-hang@P17' }));
    const well: ChatReply[] = [];
    for (let n = 0; n < 20; n += 1) well.push(await books.chat({ model: 'sim-latency-50' }));
    expect(well.filter(({ status }) => status !== 200)).toEqual([]);
    await Promise.all(hanging.map(({ reply }) => reply));
    return `${simulator.calls.list({ model: 'sim-hang@P17' }).length} calls hang; 20 × 200 of the other model, the slowest in ${slowest(well)} ms`;
  },
);

const holdS = 2;
const limitedJobs = 40;

fault(
  {
    id: 'P15',
    injected: `a 429 with Retry-After: ${holdS} for a model with ${limitedJobs} jobs, under a load of another model`,
    callsPerRequest: 2,
  },
  async (books) => {
    const { simulator } = await books.start({
      variables: { OPENAI_CONCURRENCY: '4', CHAT_TIMEOUT_MS: '60000' },
    });
    const model = `sim-limit-1-${holdS}-P15@P15`;
    const first = books.ask({ model });
    const call = await first.arrived();
    await call.closed;
    const limited = Array.from({ length: limitedJobs }, () => books.chat({ model }));
    const answered = Promise.all([first.reply, ...limited]);
    const others = paced({ count: 200, everyMs: 25 }, () => books.chat({ model: 'sim-latency-50' }));
    const replies = await answered;
    const well = await others;
    expect([...replies, ...well].filter(({ status }) => status !== 200)).toEqual([]);
    const timesOf = (name: string) =>
      simulator.calls
        .list()
        .filter((one) => one.model?.startsWith(name))
        .map(({ facts }) => facts.receivedAt);
    const [limitedAt = 0, ...later] = timesOf(model);
    expect(Math.min(...later) - limitedAt).toBeGreaterThanOrEqual(holdS * 1000);
    const otherTimes = timesOf('sim-latency-50');
    // Neither waits for the other: many of the other model during the hold, and more of them after the last of the
    // limited one.
    const meanwhile = otherTimes.filter((at) => at < limitedAt + holdS * 1000).length;
    expect(meanwhile).toBeGreaterThan(2);
    expect(Math.max(...otherTimes)).toBeGreaterThan(Math.max(...later));
    return `${replies.length} × 200 after the hold, ${Math.max(...later) - limitedAt} ms after the 429 at the latest; ${meanwhile} calls of the other model during it`;
  },
);

fault(
  {
    id: 'P16',
    injected: 'a 429 with Retry-After: 0 for every call, 20 callers for 5 s',
    callsPerRequest: 2,
  },
  async (books) => {
    const { simulator } = await books.start();
    const model = 'sim-retry-after-0@P16';
    await books.chat({ model });
    const since = simulator.calls.lastId;
    const over = delay(5000).then(() => true);
    const caller = async () => {
      do await books.chat({ model, headers: { Prefer: 'wait=3' } });
      while (!(await Promise.race([over, Promise.resolve(false)])));
    };
    const callers = Array.from({ length: 20 }, caller);
    await over;
    const calls = simulator.calls.lastId - since;
    await Promise.all(callers);
    expect(calls).toBeLessThanOrEqual(20);
    return `${calls} calls in 5 s`;
  },
);
