import { expect } from 'vitest';
import { providerIds } from '../../shared/contract.js';
import { codeOf } from './support/balance.js';
import { eventually } from './support/expectations.js';
import { fault } from './support/fault.js';

/** Whose limits the workers' logs tell of. */
const limitedProviders = (logs: string): unknown[] =>
  logs
    .split('\n')
    .filter((line) => line.includes('provider rate limited'))
    .map((line) => JSON.parse(line).provider);

fault(
  {
    id: 'P1',
    injected: 'a 429 with Retry-After: 1 of every provider; a second caller of the model meanwhile',
    callsPerRequest: 2,
  },
  async (books) => {
    const { simulator } = await books.start();
    const pauses = await Promise.all(
      providerIds.map(async (provider) => {
        const model = `sim-limit-1-1-${provider}@P1`;
        const limited = books.ask({ provider, model });
        const first = await limited.arrived();
        await first.closed;
        // A call that begins before the worker has read the 429 is not held back.
        await eventually(async () => expect(limitedProviders(books.deployment.logs())).toContain(provider));
        const second = books.ask({ provider, model });
        const replies = await Promise.all([limited.reply, second.reply]);
        expect(replies.map(codeOf)).toEqual(['ok', 'ok']);
        const again = simulator.calls.list({ model })[1];
        return (again?.facts.receivedAt ?? Number.NaN) - first.facts.receivedAt;
      }),
    );
    expect(Math.min(...pauses)).toBeGreaterThanOrEqual(1000);
    expect(books.deployment.logs()).not.toContain('breaker changed');
    return `200 after one retry, ${pauses.join(', ')} ms after the 429; the second caller waits and has its 200`;
  },
);

fault(
  { id: 'P1', timed: true, injected: 'a 429 with Retry-After: 3600; more callers during the hold' },
  async (books) => {
    await books.start();
    const model = 'sim-retry-after-3600@P1';
    const limited = await books.chat({ model });
    expect(codeOf(limited)).toBe('provider_rate_limited');
    expect(limited.headers.get('retry-after')).toBe('3600');
    expect(limited.body).toMatchObject({ provider: 'openai', retryable: true });
    expect(limited.tookMs).toBeLessThan(1000);
    await eventually(async () => {
      const refused = await books.chat({ model, headers: { Prefer: 'wait=1' } });
      expect(codeOf(refused)).toBe('provider_rate_limited');
      expect(refused.tookMs).toBeLessThan(500);
      const retryAfter = Number(refused.headers.get('retry-after'));
      expect(retryAfter).toBeGreaterThan(30);
      expect(retryAfter).toBeLessThanOrEqual(60);
    });
    expect((await books.chat({ provider: 'anthropic' })).status).toBe(200);
    expect((await books.chat({})).status).toBe(200);
    expect(books.deployment.logs()).not.toContain('breaker changed');
    return `500 provider_rate_limited in ${Math.round(limited.tookMs)} ms, later callers of the model refused at once, other models and providers serve`;
  },
);
