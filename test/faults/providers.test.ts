import { expect } from 'vitest';
import { failureKinds } from '../../shared/failures.js';
import { askAll, beginWell, codesByModel, expectBreakersClosed } from './support/at-providers.js';
import { codeOf } from './support/balance.js';
import { fault } from './support/fault.js';
import { footprintOf } from './support/footprint.js';

fault(
  { id: 'P2', injected: '500, 502, 503 and 529 of every provider', callsPerRequest: 2 },
  async (books) => {
    await books.start();
    await beginWell(books, 10);
    const met = await askAll(
      books,
      [500, 502, 503, 529].map((status) => `sim-status-${status}`),
    );
    const { title, detail } = failureKinds.provider_error;
    for (const { provider, reply } of met) {
      expect(reply.status).toBe(500);
      // Nothing but our own words.
      expect(reply.body).toEqual({
        type: 'urn:quillgate:problem:provider_error',
        title,
        status: 500,
        detail,
        code: 'provider_error',
        requestId: reply.headers.get('x-request-id'),
        provider,
        retryable: true,
      });
    }
    return `${met.length} × 500 provider_error, in our own words, after one retry at most`;
  },
);

fault(
  {
    id: 'P5',
    injected: 'truncated JSON, a reset in the body, HTML with 200, JSON of another shape, of every provider',
    callsPerRequest: 2,
  },
  async (books) => {
    await books.start();
    await beginWell(books, 12);
    const met = await askAll(books, ['sim-truncated', 'sim-reset-body', 'sim-html', 'sim-garbage']);
    expect(codesByModel(met)).toEqual({
      'sim-truncated': ['provider_error'],
      'sim-reset-body': ['provider_error'],
      'sim-html': ['provider_error'],
      'sim-garbage': ['provider_error'],
    });
    return `${met.length} × 500 provider_error`;
  },
);

fault(
  {
    id: 'P6',
    injected: 'nothing usable: no choices, null text, blocked, refused, of every provider, five times',
  },
  async (books) => {
    await books.start();
    const models = ['sim-empty', 'sim-null', 'sim-blocked', 'sim-refused'];
    const met = await askAll(
      books,
      models.flatMap((model) => Array<string>(5).fill(model)),
    );
    const codes = codesByModel(met);
    for (const code of Object.values(codes).flat())
      expect(['provider_error', 'content_blocked']).toContain(code);
    expect(codes['sim-blocked']).toEqual(['content_blocked']);
    await expectBreakersClosed(books);
    return `${met.length} × 500 provider_error or content_blocked, one call each; every breaker stays closed`;
  },
);

fault({ id: 'P7', injected: '401 and 403 of every provider' }, async (books) => {
  await books.start();
  const met = await askAll(books, ['sim-status-401', 'sim-status-403']);
  expect(codesByModel(met)).toEqual({
    'sim-status-401': ['provider_rejected'],
    'sim-status-403': ['provider_rejected'],
  });
  for (const { reply } of met) expect(reply.body.retryable).toBe(false);
  await expectBreakersClosed(books);
  return `${met.length} × 500 provider_rejected, one call each; the key is in no log and no answer`;
});

fault({ id: 'P8', injected: 'a 400 of every provider, fifty times' }, async (books) => {
  await books.start();
  const met = await askAll(books, Array<string>(50).fill('sim-status-400'));
  expect(met.map(({ reply }) => codeOf(reply)).filter((code) => code !== 'provider_rejected')).toEqual([]);
  await expectBreakersClosed(books);
  return `${met.length} × 500 provider_rejected, one call each; every breaker stays closed`;
});

const mebibyte = 1_048_576;

fault(
  {
    id: 'P14',
    injected: 'answers and errors without an end, of every provider, five times',
  },
  async (books) => {
    const { workers } = await books.start({ variables: { PROVIDER_MAX_RESPONSE_BYTES: String(mebibyte) } });
    await beginWell(books, 1);
    const before = footprintOf(workers).megabytes;
    let most = before;
    const watch = setInterval(() => (most = Math.max(most, footprintOf(workers).megabytes)), 50);
    books.release(() => clearInterval(watch));
    const models = ['sim-endless', 'sim-endless-400', 'sim-endless-503'];
    const met = await askAll(
      books,
      models.flatMap((model) => Array<string>(5).fill(model)),
    );
    expect(codesByModel(met)).toEqual(Object.fromEntries(models.map((model) => [model, ['provider_error']])));
    for (const { reply } of met) expect(reply.body.retryable).toBe(false);
    // A call copies its bytes once or twice; without the limit it is a gigabyte in a few seconds.
    expect(most - before).toBeLessThan(met.length * 3 + 100);
    await expectBreakersClosed(books);
    return `${met.length} × 500 provider_error, one call each; the worker's memory went from ${before} to ${most} MB at most`;
  },
);
