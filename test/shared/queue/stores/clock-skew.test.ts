import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { StoreClock } from '../../../../shared/queue/stores/clock-skew.js';

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

  it.each([
    ['nothing within two seconds', 98_000, 0, undefined],
    ['nothing within two seconds', 102_000, 0, undefined],
    ['how far apart they are, which is which, and what to do', 103_500, 0, /3\.5 s behind .* synchronise/],
    ['how far apart they are, which is which, and what to do', 97_000, 0, /3\.0 s ahead of .* synchronise/],
    ['what is certain, however long the way there and back took', 103_900, 2000, undefined],
    ['what is certain, however long the way there and back took', 104_100, 2000, /3\.1 s behind/],
  ])('says %s: %i after %i ms', async (_, storeAt, tookMs, expected) => {
    const times = [100_000, 100_000 + tookMs];
    const said = await new StoreClock(() => times.shift() ?? 0).sync(async () => storeAt);
    if (expected === undefined) expect(said).toBeUndefined();
    else expect(said).toMatch(expected);
  });
});
