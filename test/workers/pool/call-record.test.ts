import { beforeEach, describe, expect, it } from 'vitest';
import { CallRecord } from '../../../workers/pool/backlog.js';

let now: number;
let calls: CallRecord;
beforeEach(() => {
  now = 0;
  calls = new CallRecord(() => now);
});

describe('CallRecord', () => {
  it('calls -> shares of faults and limits, and the latencies of replies alone, if there are any', () => {
    expect(calls.stats).toBeUndefined();
    calls.record('fault', { tookMs: 9000 });
    expect(calls.stats).toEqual({ count: 1, errorRate: 1, rateLimitRate: 0 });
    for (let ms = 1; ms <= 16; ms += 1) calls.record('reply', { tookMs: ms });
    for (const result of ['limit', 'other', 'other'] as const) calls.record(result, { tookMs: 9000 });
    const shares = { errorRate: 0.05, rateLimitRate: 0.05 };
    expect(calls.stats).toEqual({ count: 20, ...shares, latencyMs: { p50: 8, p95: 16 } });
  });

  it('a minute, or more than five hundred calls later -> a call is forgotten', () => {
    for (let n = 0; n < 1200; n += 1) calls.record(n < 700 ? 'fault' : 'reply', { tookMs: n });
    expect(calls.stats).toMatchObject({ count: 500, errorRate: 0 });
    now = 60_000;
    expect(calls.stats).toBeUndefined();
  });

  it('failures -> it has the last, and since when calls have failed with its code, until a reply', () => {
    const fail = (at: number, code: string) => {
      now = at;
      calls.record('fault', { tookMs: 1, code });
    };
    expect(calls.lastError).toBeUndefined();
    fail(0, 'provider_error');
    calls.record('other', { tookMs: 1 });
    fail(1000, 'provider_error');
    now = 3000;
    expect(calls.lastError).toEqual({ code: 'provider_error', agoMs: 2000, sinceMs: 3000 });
    fail(3000, 'provider_timeout');
    expect(calls.lastError).toEqual({ code: 'provider_timeout', agoMs: 0, sinceMs: 0 });
    now = 90_000;
    calls.record('reply', { tookMs: 1 });
    expect(calls.lastError).toEqual({ code: 'provider_timeout', agoMs: 87_000, sinceMs: 87_000 });
    fail(90_000, 'provider_timeout');
    expect(calls.lastError).toEqual({ code: 'provider_timeout', agoMs: 0, sinceMs: 0 });
  });
});
