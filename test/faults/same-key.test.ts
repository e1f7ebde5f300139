import { expect } from 'vitest';
import { profiles } from '../support/profiles.js';
import { codeOf } from './support/balance.js';
import { bothStores, catalogue } from './support/catalogue.js';
import { expectCodes } from './support/expectations.js';

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
});
