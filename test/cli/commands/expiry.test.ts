import { describe, expect, it } from 'vitest';
import { parseExpiry } from '../../../cli/commands/tokens.js';

const now = new Date('2026-11-20T12:00:00Z');

describe('parseExpiry', () => {
  it.each([
    ['30m', '2026-11-20T12:30:00.000Z'],
    ['12h', '2026-11-21T00:00:00.000Z'],
    ['90d', '2027-02-18T12:00:00.000Z'],
    ['2027-01-31', '2027-01-31T00:00:00.000Z'],
    ['2027-01-31T10:00:00+01:00', '2027-01-31T09:00:00.000Z'],
  ])('reads %s', (text, end) => {
    expect(parseExpiry(text, now)?.toISOString()).toBe(end);
  });

  it('has no end for never', () => {
    expect(parseExpiry('never', now)).toBeUndefined();
  });

  it.each(['', '90', 'd', '-1d', '1.5d', '1w', '9999999d', '2026-02-30', 'Never', 'canary'])(
    'refuses %s',
    (text) => {
      expect(() => parseExpiry(text, now)).toThrow(/^--expires must be like 30m, 12h or 90d/);
    },
  );

  it.each(['0d', '2026-11-20', '2020-01-01T00:00:00Z'])('refuses %s, which is not in the future', (text) => {
    expect(() => parseExpiry(text, now)).toThrow('must be in the future');
  });
});
