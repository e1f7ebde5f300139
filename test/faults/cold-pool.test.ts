import { expect } from 'vitest';
import { withLag } from '../support/lateness.js';
import { codeOf } from './support/balance.js';
import { fault } from './support/fault.js';

fault(
  {
    id: 'Q3',
    timed: true,
    injected: '120 requests with a deadline of 10 s to a pool that has just started: 20 at once, 8 s a call',
  },
  async (books) => {
    const { simulator } = await books.start();
    const startedAt = performance.now();
    const headers = { Prefer: 'wait=10' };
    const send = async () => ({
      reply: await books.chat({ model: 'sim-latency-8000', headers }),
      atMs: performance.now() - startedAt,
    });
    const { result, lagMs } = await withLag(() => Promise.all(Array.from({ length: 120 }, send)));
    const calls = simulator.calls.list().length;
    expect(calls).toBeLessThanOrEqual(25);
    const answered = result.filter(({ reply }) => reply.status === 200);
    expect(answered.length).toBeGreaterThanOrEqual(20);
    const firstAnswerMs = Math.min(...answered.map(({ atMs }) => atMs));
    const refused = result.filter(({ reply }) => reply.status !== 200);
    expect(refused.map(({ reply }) => codeOf(reply)).filter((code) => code !== 'overloaded')).toEqual([]);
    const lastRefusalMs = Math.max(...refused.map(({ atMs }) => atMs)) - firstAnswerMs;
    expect(lastRefusalMs).toBeLessThan(1000 + lagMs);
    return `${calls} calls, ${answered.length} answers, ${refused.length} refused up to ${Math.round(lastRefusalMs)} ms after the first answer`;
  },
);
