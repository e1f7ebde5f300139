import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import type { ProviderId } from '../../shared/contracts/contract.js';
import { profiles } from '../support/profiles.js';
import { codeOf } from './support/balance.js';
import type { Books } from './support/books.js';
import { catalogue } from './support/catalogue.js';
import { eventually, expectCodes, linesWith, untilOk } from './support/expectations.js';
import { newUser } from './support/users.js';

/** Calls of the provider of P13 that hang: those of patient callers, and more than open the breaker. */
const [patientCallers, impatientCallers, hanging] = [4, 5, 12];
const models = {
  P1: 'sim-limit-1-1-P1@P1',
  P1later: 'sim-retry-after-3600@P1',
  P11: 'sim-gate-0@P11',
  P13: `sim-hang-${hanging}-P13@P13`,
};
const limited: readonly ProviderId[] = ['openai', 'anthropic', 'bedrock'];
const variables = {
  ...profiles.plain,
  // Of 19 slots one user may have 14.
  OPENAI_CONCURRENCY: '19',
  // Longer than it takes to ask once more.
  BREAKER_RESET_MS: '15000',
  ...Object.fromEntries(
    limited.map((id) => [`${id.toUpperCase()}_MODELS`, [...Object.values(models), '*'].join(',')]),
  ),
};

/** More than any breaker should need. */
const maxCalls = 60;

/** A few callers ask until one of them is refused without a call. */
async function askUntilRefused(
  { deployment, chat }: Books,
  call: Parameters<Books['chat']>[0],
): Promise<void> {
  const { calls } = deployment.simulator;
  const since = calls.lastId;
  const codes: string[] = [];
  const caller = async () => {
    while (!codes.includes('provider_unavailable') && calls.lastId - since < maxCalls)
      codes.push(codeOf(await chat(call)));
  };
  await Promise.all(Array.from({ length: impatientCallers }, caller));
  expect(codes).toContain('provider_unavailable');
}

catalogue({ variables }, (add) => {
  add(
    'P1 a 429 with Retry-After: 1, and another caller meanwhile → both are answered, by calls after that second',
    { callsPerRequest: 2 },
    async (books) => {
      const model = models.P1;
      await Promise.all(
        limited.map(async (provider) => {
          const first = books.ask({ provider, model });
          const { calls } = books.deployment.simulator;
          const begins = () => calls.list({ model }).filter((call) => call.provider === provider);
          // A call that begins before the worker has read the 429 is not held back.
          const limits = () => linesWith(books, 'provider rate limited');
          await eventually(() =>
            expect(limits().map((line) => JSON.parse(line).provider)).toContain(provider),
          );
          const second = books.ask({ provider, model });
          expectCodes(await Promise.all([first.reply, second.reply]), ['ok']);
          const [limitedAt = 0, ...later] = begins().map(({ facts }) => facts.receivedAt);
          expect(later).toHaveLength(2);
          expect(Math.min(...later) - limitedAt).toBeGreaterThanOrEqual(1000);
        }),
      );
      expect(linesWith(books, 'breaker changed')).toEqual([]);
    },
  );

  add(
    'P1 a 429 with Retry-After: 3600 → the model is refused at once, and no other model or provider',
    {},
    async (books) => {
      const model = models.P1later;
      const first = await books.chat({ model });
      expect(first.body).toMatchObject({
        code: 'provider_rate_limited',
        provider: 'openai',
        retryable: true,
      });
      expect(first.headers.get('retry-after')).toBe('3600');
      // Not when its time is over.
      const refused = await books.chat({ model, headers: { Prefer: 'wait=30' } });
      expect(codeOf(refused)).toBe('provider_rate_limited');
      const retryAfter = Number(refused.headers.get('retry-after'));
      expect(retryAfter).toBeGreaterThan(0);
      expect(retryAfter).toBeLessThanOrEqual(60);
      expectCodes([await books.chat(), await books.chat({ provider: 'anthropic' })], ['ok']);
      expect(linesWith(books, 'breaker changed')).toEqual([]);
    },
  );

  add(
    'P11 a model that is slower than every caller of one user is patient → refused to this user, and called for another',
    {},
    async (books) => {
      const model = models.P11;
      const other = await newUser(books);
      const impatient = { model, headers: { Prefer: 'wait=2' } };
      await askUntilRefused(books, impatient);
      const { simulator } = books.deployment;
      const { lastId } = simulator.calls;
      const called = simulator.waitForCall((call) => call.id > lastId && call.model === model);
      const reply = other({ model });
      await called;
      // Its call has begun before the pause is over.
      const refused = await books.chat(impatient);
      expect(refused.body.detail).toMatch(/^openai\/sim-gate-0@P11 is failing; the next try is in \d+ s\.$/);
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
      simulator.open(model);
      expectCodes([await reply], ['ok']);
      await untilOk(books, { model });
    },
  );

  add(
    'P13 a provider that answers again while earlier calls to it hang → the probe finds that it does',
    {},
    async (books) => {
      const model = models.P13;
      const patient = Array.from({ length: patientCallers }, () => books.ask({ model }));
      const made = () => books.deployment.simulator.calls.list({ model });
      await eventually(() => expect(made()).toHaveLength(patientCallers));
      const calls = made();
      // Long enough for their calls to count on a slow machine: less than 0.9 s of a call shows nothing.
      await askUntilRefused(books, { model, headers: { Prefer: 'wait=5' } });
      // Probes that hang as well are cut.
      const ask = () => books.chat({ model, headers: { Prefer: 'wait=1' } });
      for (let reply = await ask(); reply.status !== 200; reply = await ask())
        await delay(1000 * Number(reply.headers.get('retry-after')));
      expect(calls.map(({ ended }) => ended)).toEqual(calls.map(() => undefined));
      for (const asked of patient) asked.leave();
    },
  );
});
