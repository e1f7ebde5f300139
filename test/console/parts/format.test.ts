import { describe, expect, it } from 'vitest';
import { formatCost, formatTime } from '../../../console/parts/format.ts';

describe('formatTime', () => {
  it('is in UTC and of 24 hours, with the date', () => {
    expect(formatTime('2026-12-01T23:03:22.987+05:00')).toBe('2026-12-01 18:03:22');
    expect(formatTime(0)).toBe('1970-01-01 00:00:00');
  });
});

describe('formatCost', () => {
  const known = { cost: 0.0123456, calls: 3, estimated: 0, lost: 0 };

  it.each([
    ['$0.0123', known],
    ['$1,234.50', { ...known, cost: 1234.5 }],
    ['$0.00', { ...known, cost: 0 }],
    ['at least $0.0123', { ...known, estimated: 1 }],
    ['at least $0.0123', { ...known, lost: 1 }],
    ['at least $0.0123', { ...known, unpriced: 2 }],
    ['unknown', { ...known, cost: null }],
    ['unknown', { cost: null, calls: 0, estimated: 0, lost: 1 }],
    ['–', { ...known, calls: 0, cost: 0 }],
  ])('is %s, and never $0 where it is unknown', (text, costs) => {
    expect(formatCost(costs)).toBe(text);
  });
});
