import { describe, expect, it } from 'vitest';
import { DurationCounts } from '../../../shared/metrics/instruments.js';

describe('DurationCounts', () => {
  it('gives percentiles of several that are at most a tenth too high', () => {
    const [low, high] = [new DurationCounts(), new DurationCounts()];
    for (let ms = 1; ms <= 500; ms += 1) low.record(ms);
    for (let ms = 501; ms <= 1000; ms += 1) high.record(ms);
    for (const share of [0.1, 0.5, 0.95, 0.99]) {
      const percentile = DurationCounts.percentile([low, high], share);
      expect(percentile).toBeGreaterThanOrEqual(share * 1000);
      expect(percentile).toBeLessThanOrEqual(share * 1100 + 1);
    }
    expect([low.count, high.sumMs]).toEqual([500, 375_250]);
  });

  it('takes what is below 0 or above an hour, and is 0 without any', () => {
    const counts = new DurationCounts();
    expect(DurationCounts.percentile([counts], 0.5)).toBe(0);
    counts.record(-1);
    counts.record(1e12);
    expect(DurationCounts.percentile([counts], 0.5)).toBe(1);
    expect(DurationCounts.percentile([counts], 1)).toBeLessThan(4_000_000);
  });
});
