import { describe, expect, it } from 'vitest';
import { daysBetween, requestsOf } from '../../../console/views/usage.tsx';
import { ledgerRequest } from '../ledger-request.ts';

describe('daysBetween', () => {
  it('is every day with both ends, and none of a span that ends before it begins', () => {
    expect(daysBetween('2026-02-27', '2026-03-01')).toEqual(['2026-02-27', '2026-02-28', '2026-03-01']);
    expect(daysBetween('2026-03-01', '2026-02-27')).toEqual([]);
  });
});

describe('requestsOf', () => {
  const span = { from: '2026-12-01', to: '2026-12-31' };
  const { tokens } = ledgerRequest();
  const sums = { calls: 1, failed: 0, estimated: 0, unpriced: 0, lost: 0, tokens, cost: 1 };

  it('is what a row counts in the whole span, a token by its id', () => {
    const row = { ...sums, user: 'ann', userId: '1', token: 'nightly', tokenId: 't' };
    expect(requestsOf(row, span)).toMatchObject({
      ...{ user: 'ann', token: 't', model: undefined },
      ...{ from: '2026-12-01T00:00:00', to: '2027-01-01T00:00:00' },
    });
  });

  it('is what a row counts on its day', () => {
    const row = { ...sums, day: '2026-12-05' };
    expect(requestsOf(row, span)).toMatchObject({ from: '2026-12-05T00:00:00', to: '2026-12-06T00:00:00' });
  });
});
