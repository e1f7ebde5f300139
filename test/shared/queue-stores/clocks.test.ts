import { describe, expect, it } from 'vitest';
import { findClockDefect } from '../../../shared/queue-stores/clocks.js';

const reading = (storeAt: number, tookMs = 0) =>
  findClockDefect({ askedAt: 100_000, answeredAt: 100_000 + tookMs, storeAt });

describe('findClockDefect', () => {
  it.each([98_000, 100_000, 102_000])('finds none within two seconds: %i', (storeAt) => {
    expect(reading(storeAt)).toBeUndefined();
  });

  it('says how far apart they are, which is which, and what to do', () => {
    expect(reading(103_500)).toMatch(/3\.5 s behind .* synchronise/);
    expect(reading(97_000)).toMatch(/3\.0 s ahead of .* synchronise/);
  });

  it('takes the middle of the way there and back, and does not count what the way may have taken', () => {
    expect(reading(101_000, 2000)).toBeUndefined();
    expect(reading(103_900, 2000)).toBeUndefined();
    expect(reading(104_100, 2000)).toMatch(/3\.1 s behind/);
  });
});
