import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { findClockSkew, StoreClock } from '../../../../shared/queue/stores/clock-skew.js';

const reading = (storeAt: number, tookMs = 0) =>
  findClockSkew({ askedAt: 100_000, answeredAt: 100_000 + tookMs, storeAt });

describe('StoreClock', () => {
  // Time passes only where the test says so.
  beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }));
  afterEach(() => void vi.useRealTimers());

  /** How far it is from the store's clock, which is that many milliseconds ahead of the monotonic one. */
  const off = (clock: StoreClock, offsetMs: number) => Math.abs(clock.now() - (performance.now() + offsetMs));

  it("goes by this machine's clock until it has looked", () => {
    expect(new StoreClock(() => 1234.4).now()).toBe(1234);
  });

  it("goes by the store's from then on, whatever this machine's does", async () => {
    let offsetMs = 1_000_000;
    const clock = new StoreClock(() => performance.now() + offsetMs);
    expect(await clock.sync(async () => performance.now() + 1_001_000)).toBeUndefined();
    offsetMs -= 120_000;
    expect(off(clock, 1_001_000)).toBeLessThan(50);
    expect(await clock.sync(async () => performance.now() + 1_001_000)).toMatch(/121\.\d s behind/);
    expect(off(clock, 1_001_000)).toBeLessThan(50);
  });

  it('is not misled by a look that took long, but follows the store when it jumps', async () => {
    const clock = new StoreClock();
    await clock.sync(async () => performance.now() + 5000);
    const slow = async (offsetMs: number) => {
      const read = performance.now() + offsetMs;
      // The store has read its clock at once, and its answer was late.
      vi.advanceTimersByTime(100);
      return read;
    };
    await clock.sync(() => slow(5000));
    expect(off(clock, 5000)).toBeLessThan(40);
    await clock.sync(() => slow(9000));
    expect(off(clock, 9000)).toBeLessThan(200);
  });
});

describe('findClockSkew', () => {
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
