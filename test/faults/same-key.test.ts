import { expect } from 'vitest';
import { codeOf } from './support/balance.js';
import { expectCodes } from './support/expectations.js';
import { fault } from './support/fault.js';

fault(
  { id: 'I1', injected: 'the same Idempotency-Key ten times at once, at two APIs, and once later' },
  async (books) => {
    const { url, startApi } = await books.start();
    const { url: another } = await startApi();
    const call = { model: 'sim-latency-500@I1', headers: { 'Idempotency-Key': 'ten-at-once' } };
    const replies = await Promise.all(
      Array.from({ length: 10 }, (_, n) => books.chat({ ...call, url: n % 2 === 0 ? url : another })),
    );
    replies.push(await books.chat(call));
    expectCodes(replies, ['ok']);
    expect(new Set(replies.map(({ body }) => JSON.stringify(body))).size).toBe(1);
    expect(books.deployment.simulator.calls.list({ model: call.model })).toHaveLength(1);
    return `${replies.length} equal answers, one call`;
  },
);

fault(
  { id: 'I2', injected: 'the same Idempotency-Key with another body, model and provider' },
  async (books) => {
    await books.start();
    const headers = { 'Idempotency-Key': 'reused' };
    const model = 'sim-echo@I2';
    expect(codeOf(await books.chat({ model, headers }))).toBe('ok');
    const others = await Promise.all([
      books.chat({ model, headers, messages: [{ content: 'Another question' }] }),
      books.chat({ model: 'sim-echo@I2-other', headers }),
      books.chat({ model, headers, provider: 'bedrock' }),
    ]);
    expect(others.map(({ status, body }) => [status, body.code])).toEqual(
      Array(3).fill([422, 'idempotency_key_reused']),
    );
    expect(codeOf(await books.chat({ model, headers }))).toBe('ok');
    return '422 three times, no call; the first request is still answered';
  },
);
