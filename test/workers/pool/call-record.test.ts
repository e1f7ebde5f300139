import { describe, expect, it } from 'vitest';
import { CallRecord } from '../../../workers/pool/call-record.js';

describe('CallRecord', () => {
  it('gives shares of faults and limits, and the latencies of replies alone', () => {
    const calls = new CallRecord(() => 0);
    expect(calls.stats).toBeUndefined();
    for (let ms = 1; ms <= 16; ms += 1) calls.record('reply', { tookMs: ms });
    calls.record('fault', { tookMs: 9000 });
    calls.record('limit', { tookMs: 1 });
    calls.record('other', { tookMs: 9000 });
    calls.record('other', { tookMs: 9000 });
    expect(calls.stats).toEqual({
      count: 20,
      errorRate: 0.05,
      rateLimitRate: 0.05,
      latencyMs: { p50: 8, p95: 16 },
    });
  });

  it('has no latency without a reply', () => {
    const calls = new CallRecord(() => 0);
    calls.record('fault', { tookMs: 1 });
    expect(calls.stats).toEqual({ count: 1, errorRate: 1, rateLimitRate: 0 });
  });

  it('forgets a call after a minute, and all but the latest five hundred', () => {
    let now = 0;
    const calls = new CallRecord(() => now);
    for (let n = 0; n < 1200; n += 1) calls.record(n < 700 ? 'fault' : 'reply', { tookMs: n });
    expect(calls.stats).toMatchObject({ count: 500, errorRate: 0 });
    now = 60_000;
    expect(calls.stats).toBeUndefined();
  });

  it('remembers the last failure, and since when calls have failed with its code', () => {
    let now = 0;
    const calls = new CallRecord(() => now);
    const fail = (code: string) => calls.record('fault', { tookMs: 1, code });
    expect(calls.lastError).toBeUndefined();
    fail('provider_error');
    now = 1000;
    calls.record('other', { tookMs: 1 });
    fail('provider_error');
    now = 3000;
    expect(calls.lastError).toEqual({ code: 'provider_error', agoMs: 2000, sinceMs: 3000 });
    fail('provider_timeout');
    expect(calls.lastError).toEqual({ code: 'provider_timeout', agoMs: 0, sinceMs: 0 });
    now = 90_000;
    calls.record('reply', { tookMs: 1 });
    expect(calls.lastError).toEqual({ code: 'provider_timeout', agoMs: 87_000, sinceMs: 87_000 });
    fail('provider_timeout');
    expect(calls.lastError).toEqual({ code: 'provider_timeout', agoMs: 0, sinceMs: 0 });
  });
});
