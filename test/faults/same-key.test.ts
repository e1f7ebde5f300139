import { expect } from 'vitest';
import { profiles } from '../support/profiles.js';
import { providerOf } from './support/at-providers.js';
import { codeOf } from './support/balance.js';
import { bothStores, catalogue } from './support/catalogue.js';
import { expectCodes } from './support/expectations.js';
import { numbersUpTo } from './support/streams.js';

const open = 20;

catalogue({ variables: profiles.plain }, (add) => {
  add(
    'I1 the same Idempotency-Key ten times at once, at two APIs, and once later → one call, and one answer for all',
    { stores: bothStores },
    async (books) => {
      const { url: another } = await books.deployment.startApi();
      const call = { model: 'sim-verbatim@I1', headers: { 'Idempotency-Key': 'ten-at-once' } };
      const replies = await Promise.all(
        Array.from({ length: 10 }, (_, n) => books.chat({ ...call, ...(n % 2 === 1 && { url: another }) })),
      );
      replies.push(await books.chat(call));
      expectCodes(replies, ['ok']);
      expect(new Set(replies.map(({ body }) => JSON.stringify(body))).size).toBe(1);
      expect(books.deployment.simulator.calls.list({ model: call.model })).toHaveLength(1);
    },
  );

  add(
    'I2 the same Idempotency-Key with another body, model or provider → 422, no call, and the first chat is as it was',
    {},
    async (books) => {
      const headers = { 'Idempotency-Key': 'reused' };
      const model = 'sim-echo@I2';
      expectCodes([await books.chat({ model, headers })], ['ok']);
      const others = await Promise.all([
        books.chat({ model, headers, messages: [{ content: 'Another question' }] }),
        books.chat({ model: 'sim-echo@I2-other', headers }),
        books.chat({ model, headers, provider: 'bedrock' }),
      ]);
      expect(others.map(({ status }) => status)).toEqual([422, 422, 422]);
      expect(others.map(codeOf)).toEqual(Array(3).fill('idempotency_key_reused'));
      expectCodes([await books.chat({ model, headers })], ['ok']);
    },
  );

  add(
    'A1 an API killed while a client with a key waits → another API gives the answer of the same call, and gives it again',
    { unanswered: 1 },
    async (books) => {
      const { child, url } = await books.deployment.startApi();
      const call = { model: 'sim-gate-0@A1', headers: { 'Idempotency-Key': 'killed-in-the-middle' } };
      const first = books.ask({ ...call, url });
      await first.arrived();
      await books.kill(child);
      await expect(first.reply).rejects.toThrow();
      const joining = books.ask(call);
      joining.open();
      const joined = await joining.reply;
      const replayed = await books.chat(call);
      expectCodes([joined, replayed], ['ok']);
      expect(replayed.body).toEqual(joined.body);
      expect(replayed.headers.get('idempotency-replayed')).toBe('true');
      expect(books.deployment.simulator.calls.list({ model: call.model })).toHaveLength(1);
    },
  );

  add(
    `T5 an API killed with ${open} stored streams open → another API resumes them, byte for byte, with one call each`,
    { unanswered: open, stores: bothStores },
    async (books) => {
      const { deployment } = books;
      const { child, url } = await deployment.startApi();
      const calls = Array.from({ length: open }, (_, n) => ({
        ...{ provider: providerOf(n), model: `sim-gate-100@T5-${n}` },
        headers: { 'Idempotency-Key': `T5-${n}` },
      }));
      const first = calls.map((call) => books.stream({ ...call, url }));
      await Promise.all(first.map(({ begun }) => begun));
      await books.kill(child);
      await Promise.allSettled(first.map(({ end }) => end));
      const rest = calls.map(({ headers, ...call }, n) =>
        books.stream({ ...call, headers: { ...headers, 'Last-Event-ID': first[n]?.seen.lastEventId ?? '' } }),
      );
      for (const stream of rest) stream.open();
      const ends = await Promise.all(rest.map(({ end }) => end));
      expectCodes(ends, ['ok']);
      const whole = numbersUpTo(200 * 4).slice(0, String(ends[0]?.body.response).length);
      ends.forEach(({ body }, n) => {
        expect(body.response).toBe(whole);
        expect(`${first[n]?.seen.text}${rest[n]?.seen.text}`).toBe(whole);
      });
      for (const { model } of calls) expect(deployment.simulator.calls.list({ model })).toHaveLength(1);
    },
  );
});
