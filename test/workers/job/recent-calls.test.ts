import { describe, expect, it } from 'vitest';
import { RecentCalls } from '../../../workers/job/recent-calls.js';

describe('RecentCalls', () => {
  it('knows nothing before the first call', () => {
    expect(new RecentCalls().stats).toBeUndefined();
  });

  it('gives shares of faults and limits, and the latencies of replies alone', () => {
    const calls = new RecentCalls(() => 0);
    for (let ms = 1; ms <= 16; ms += 1) calls.record('reply', ms);
    calls.record('fault', 9000);
    calls.record('limit', 1);
    calls.record('other', 9000);
    calls.record('other', 9000);
    expect(calls.stats).toEqual({
      count: 20,
      errorRate: 0.05,
      rateLimitRate: 0.05,
      latencyMs: { p50: 8, p95: 16 },
    });
  });

  it('has no latency without a reply', () => {
    const calls = new RecentCalls(() => 0);
    calls.record('fault', 1);
    expect(calls.stats).toEqual({ count: 1, errorRate: 1, rateLimitRate: 0 });
  });

  it('forgets a call after a minute, and all but the latest five hundred', () => {
    let now = 0;
    const calls = new RecentCalls(() => now);
    for (let n = 0; n < 1200; n += 1) calls.record(n < 700 ? 'fault' : 'reply', n);
    expect(calls.stats).toMatchObject({ count: 500, errorRate: 0 });
    now = 60_000;
    expect(calls.stats).toBeUndefined();
  });
});
