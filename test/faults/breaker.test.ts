import { expect } from 'vitest';
import { codeOf } from './support/balance.js';
import type { Books } from './support/books.js';
import { timeUntilOk } from './support/expectations.js';
import { fault } from './support/fault.js';
import { newUser } from './support/users.js';

const concurrency = 5;
/** So many samples of a kind in a row open a breaker, after any history. */
const samplesInRow = 10;
/** More than any breaker should need. */
const maxCalls = 60;

/** As many callers as there are slots ask until one of them is refused; gives the number of calls. */
async function askUntilRefused({ deployment, chat }: Books, call: Parameters<Books['chat']>[0]) {
  const { calls } = deployment.simulator;
  const since = calls.lastId;
  const codes: string[] = [];
  const caller = async () => {
    while (!codes.includes('provider_unavailable') && calls.lastId - since < maxCalls)
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
    for (let n = 0; n < goodCalls; n += concurrency) {
      const good = await Promise.all(Array.from({ length: concurrency }, () => books.chat({ model })));
      expect(good.filter(({ status }) => status !== 200)).toEqual([]);
    }
    const { calls } = await askUntilRefused(books, { model });
    expect(calls).toBeLessThanOrEqual(samplesInRow + concurrency);
    return `the breaker opens after ${calls} calls`;
  },
);

fault(
  {
    id: 'P11',
    injected: 'a model that takes 4 s while every caller waits 3 s; then another user',
  },
  async (books) => {
    const { simulator } = await books.start({ variables: { OPENAI_CONCURRENCY: String(concurrency) } });
    const other = await newUser(books);
    const model = 'sim-latency-4000@P11';
    const { calls } = await askUntilRefused(books, { model, headers: { Prefer: 'wait=3' } });
    expect(calls).toBeLessThanOrEqual(samplesInRow + concurrency);
    const refused = await books.chat({ model, headers: { Prefer: 'wait=3' } });
    expect(refused.body.detail).toMatch(
      /^openai\/sim-latency-4000@P11 is failing; the next try is in \d+ s\.$/,
    );
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    // At once, and not after the pause.
    const { lastId } = simulator.calls;
    const called = simulator.waitForCall((call) => call.id > lastId && call.model === model);
    const askedAt = performance.now();
    const reply = other({ model });
    await called;
    const calledInMs = Math.round(performance.now() - askedAt);
    expect((await reply).status).toBe(200);
    expect(calledInMs).toBeLessThan(1000);
    return `the breaker opens after ${calls} calls, each cut by its caller; another user's is made ${calledInMs} ms later`;
  },
);

const resetMs = 2000;
const hangingCalls = 14;

fault(
  {
    id: 'P13',
    timed: true,
    injected: `a provider that answers again while ${hangingCalls} calls to it still hang`,
  },
  async (books) => {
    const { simulator } = await books.start({
      variables: {
        OPENAI_CONCURRENCY: String(hangingCalls),
        BREAKER_RESET_MS: String(resetMs),
        CHAT_TIMEOUT_MS: '20000',
      },
    });
    // A patient caller hangs on long after the impatient ones have opened the breaker.
    const model = `sim-hang-${hangingCalls - concurrency + samplesInRow}-P13@P13`;
    const patient = Array.from({ length: hangingCalls - concurrency }, () => books.ask({ model }));
    await Promise.all(patient.map((asked) => asked.arrived()));
    await askUntilRefused(books, { model, headers: { Prefer: 'wait=2' } });
    const openAt = performance.now();
    expect(simulator.calls.inFlight).toBe(patient.length);
    await timeUntilOk(books, { model });
    const tookMs = Math.round(performance.now() - openAt);
    expect(simulator.calls.inFlight).toBeGreaterThan(0);
    for (const asked of patient) asked.leave();
    expect(tookMs).toBeLessThan(resetMs + 1000);
    return `the first good answer ${tookMs} ms after the breaker opened, ${patient.length} calls still hanging`;
  },
);
