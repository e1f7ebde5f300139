import { expect } from 'vitest';
import { codeOf } from './support/balance.js';
import type { Books } from './support/books.js';
import { fault } from './support/fault.js';

const concurrency = 5;
/** So many samples of a kind in a row open a breaker, whatever was before. */
const samplesInRow = 10;
/** More than any breaker should need. */
const mostCalls = 60;

/** As many callers as there are places ask again and again until one of them is refused; gives how many calls it took. */
async function askUntilRefused({ deployment, chat }: Books, call: Parameters<Books['chat']>[0]) {
  const { calls } = deployment.simulator;
  const since = calls.lastId;
  const codes: string[] = [];
  const caller = async () => {
    while (!codes.includes('provider_unavailable') && calls.lastId - since < mostCalls)
      codes.push(codeOf(await chat(call)));
  };
  await Promise.all(Array.from({ length: concurrency }, caller));
  expect(codes).toContain('provider_unavailable');
  return { calls: calls.lastId - since };
}

/** No share of a window is ever half bad within the calls that follow these. */
const goodCalls = 300;

fault(
  {
    id: 'P12',
    injected: `a provider that fails every call after ${goodCalls} good ones in the same window`,
    callsPerRequest: 2,
  },
  async (books) => {
    await books.start({ variables: { OPENAI_CONCURRENCY: String(concurrency) } });
    const model = `sim-good-${goodCalls}-500-P12@P12`;
    const good = await Promise.all(Array.from({ length: goodCalls }, () => books.chat({ model })));
    expect(good.filter(({ status }) => status !== 200)).toEqual([]);
    const { calls } = await askUntilRefused(books, { model });
    expect(calls).toBeLessThanOrEqual(samplesInRow + concurrency);
    return `the breaker opens after ${calls} calls`;
  },
);

fault({ id: 'P11', injected: 'a provider that hangs while every caller waits 3 s' }, async (books) => {
  await books.start({ variables: { OPENAI_CONCURRENCY: String(concurrency) } });
  const { calls } = await askUntilRefused(books, {
    model: 'sim-hang@P11',
    headers: { Prefer: 'wait=3' },
  });
  expect(calls).toBeLessThanOrEqual(samplesInRow + concurrency);
  return `the breaker opens after ${calls} calls, each cut by its caller`;
});
