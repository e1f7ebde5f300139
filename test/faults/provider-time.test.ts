import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import { type ProviderId, providerIds } from '../../shared/contract.js';
import { withLag } from '../support/lateness.js';
import { ofEveryPool } from './support/at-providers.js';
import { codeOf } from './support/balance.js';
import type { Books } from './support/books.js';
import { timeUntilOk, tookMsOf } from './support/expectations.js';
import { fault } from './support/fault.js';
import { paced } from './support/pace.js';

const timeoutMs = 1000;
const variables = ofEveryPool('TIMEOUT_MS', timeoutMs);

/** Asks every provider for the model; gives how long the answers took at most. Each call has to be cut by us. */
async function expectCut(books: Books, model: string): Promise<number> {
  const { result, lagMs } = await withLag(() =>
    Promise.all(
      providerIds.map(async (provider) => {
        const asked = books.ask({ provider, model });
        const call = await asked.arrived();
        const reply = await asked.reply;
        await call.closed;
        return { reply, call };
      }),
    ),
  );
  for (const { reply, call } of result) {
    expect(codeOf(reply)).toBe('provider_timeout');
    expect(reply.tookMs).toBeGreaterThan(timeoutMs - 50);
    expect(reply.tookMs).toBeLessThan(timeoutMs + 500 + lagMs);
    expect(call.clientClosedFirst).toBe(true);
  }
  return Math.round(Math.max(...result.map(({ reply }) => reply.tookMs)));
}

fault({ id: 'P3', timed: true, injected: 'every provider hangs before the headers' }, async (books) => {
  await books.start({ variables });
  return `500 provider_timeout after ${await expectCut(books, 'sim-hang')} ms of 1,000 at most, sockets closed`;
});

fault(
  { id: 'P3', timed: true, injected: 'a provider that hangs, at 1 and at 0.3 requests/s' },
  async (books) => {
    await books.start({ variables });
    const [fast, slow] = await Promise.all([
      hangsUntilOpen(books, 'openai', 1000),
      hangsUntilOpen(books, 'anthropic', 3333),
    ]);
    // Five verdicts, and then the refusal.
    expect([fast, slow]).toEqual([6, 6]);
    return 'at both rates the breaker opens after five time-outs';
  },
);

/** One request at each interval, until one is refused; gives how many it took. */
async function hangsUntilOpen(books: Books, provider: ProviderId, everyMs: number): Promise<number> {
  for (let sent = 1; sent < 12; sent += 1) {
    const [reply] = await Promise.all([books.chat({ provider, model: 'sim-hang@P3' }), delay(everyMs)]);
    if (codeOf(reply) === 'provider_unavailable') return sent;
    expect(codeOf(reply)).toBe('provider_timeout');
  }
  return Number.POSITIVE_INFINITY;
}

fault(
  {
    id: 'P4',
    timed: true,
    injected: 'every provider sends one byte a second, or half of the body and no more',
  },
  async (books) => {
    await books.start({ variables });
    const drip = await expectCut(books, 'sim-drip');
    const hang = await expectCut(books, 'sim-hang-body');
    return `500 provider_timeout after ${Math.max(drip, hang)} ms of 1,000 at most, sockets closed`;
  },
);

const resetMs = 1000;
const openForMs = 4000;
const betweenMs = 25;

fault(
  {
    id: 'P10',
    timed: true,
    injected: 'a provider that fails until its breaker opens',
    callsPerRequest: 2,
  },
  async (books) => {
    const model = 'sim-status-500@P10';
    const { simulator } = await books.start({ variables: { BREAKER_RESET_MS: String(resetMs) } });
    const order = { count: openForMs / betweenMs, everyMs: betweenMs };
    const askOther = () => books.chat({ provider: 'anthropic', model: 'sim-latency-50' });
    const before = await paced(order, askOther);
    await untilRefused(books, model);
    const since = simulator.calls.lastId;
    const openAt = performance.now();
    const { result, lagMs } = await withLag(() =>
      Promise.all([paced(order, () => books.chat({ model })), paced(order, askOther)]),
    );
    const [failing, others] = result;
    const resets = Math.ceil((performance.now() - openAt) / resetMs);
    const refused = failing.filter((reply) => codeOf(reply) === 'provider_unavailable');
    const probes = simulator.calls.list({ since }).filter(({ provider }) => provider === 'openai').length;
    expect(tookMsOf(refused, 0.9)).toBeLessThan(100 + lagMs);
    // Who was let in just before the breaker opened waits for the probe.
    expect(tookMsOf(refused, 1)).toBeLessThan(resetMs + 500 + lagMs);
    expect(probes).toBeGreaterThan(0);
    expect(probes).toBeLessThanOrEqual(resets + 1);
    // A probe answers who made it; one more request may have been let in beside it.
    expect(failing.length - refused.length).toBeLessThanOrEqual(resets + 2);
    expect([...before, ...others].filter(({ status }) => status !== 200)).toEqual([]);
    const p99 = (replies: typeof others) => tookMsOf(replies, 0.99);
    expect(p99(others)).toBeLessThan(p99(before) + 50 + lagMs);
    // It fails exactly as often as opens a breaker.
    const passing = 'sim-fail-5-500-P10@P10';
    await untilRefused(books, passing);
    const healedMs = await timeUntilOk(books, { model: passing });
    expect(healedMs).toBeLessThan(resetMs + 1000);
    const [slowest, was, is] = [tookMsOf(refused, 1), p99(before), p99(others)].map(Math.round);
    return (
      `${refused.length} refused, the slowest in ${slowest} ms; ${probes} probes in ${openForMs} ms; well ${healedMs} ms after the ` +
      `provider was; p99 of another provider ${was} ms before and ${is} ms meanwhile`
    );
  },
);

async function untilRefused(books: Books, model: string): Promise<void> {
  while (codeOf(await books.chat({ model })) !== 'provider_unavailable');
}
