import { describe, expect, it } from 'vitest';
import { loadOf, summaryOf } from '../../../console/pools/samples.ts';
import type { Sample } from '../../../shared/contracts/history.ts';

const sample = (second: number): Sample => ({
  ...{ provider: 'openai', at: new Date(second * 1000).toISOString(), waiting: 0, active: 0, inFlight: 0 },
  ...{ concurrency: 1, arrivals: 0, ended: 0, failed: 0, queueMs: null, providerMs: null },
});

describe('loadOf', () => {
  it('is what ran and waited, with gaps where nothing was measured', () => {
    const samples = [
      { ...sample(100), inFlight: 3, waiting: 2 },
      { ...sample(105), inFlight: 3, waiting: null },
      { ...sample(115), inFlight: null, waiting: null },
      { ...sample(120), inFlight: 4 },
    ];
    expect(loadOf(samples).slice(-6)).toEqual([null, 5, 3, null, null, 4]);
    expect(loadOf([])).toEqual(Array(120).fill(null));
  });
});

describe('summaryOf', () => {
  it('says the last and the highest of what is known', () => {
    expect(summaryOf([1, null, 5])).toEqual({ last: 5, max: 5 });
    expect(summaryOf([4, null])).toEqual({ last: null, max: 4 });
    expect(summaryOf([null])).toBeUndefined();
    expect(summaryOf([])).toBeUndefined();
  });
});
