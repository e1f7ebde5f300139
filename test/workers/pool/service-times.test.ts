import { describe, expect, it } from 'vitest';
import type { FailureCode } from '../../../shared/failures.js';
import { poolHeartbeatSchema } from '../../../shared/protocol/messages.js';
import type { Outcome } from '../../../shared/protocol/outcome.js';
import { ServiceTimes } from '../../../workers/pool/backlog.js';

const took = (providerMs: number) => ({ queueMs: 0, providerMs });
const answered = (providerMs: number): Outcome => ({ kind: 'ok', text: '', model: 'm', ...took(providerMs) });
const failed = (code: FailureCode, providerMs: number): Outcome => ({
  ...{ kind: 'failed', code, retryable: true },
  ...took(providerMs),
});

function end(times: ServiceTimes, ...outcomes: Outcome[]) {
  for (const own of outcomes) times.ended(undefined, { own, outcome: own });
  return times;
}

describe('the mean of ServiceTimes', () => {
  it.each<[string, Outcome[], number | undefined]>([
    ['no job -> there is none', [], undefined],
    ['the first answer -> it is its time', [answered(40)], 40],
    ['another answer -> it follows slowly', [answered(40), answered(20)], 39],
    ['a longer time-out -> it grows', [answered(40), failed('provider_timeout', 60)], 41],
    ['a shorter time-out -> it stays', [answered(40), failed('provider_timeout', 20)], 40],
    ['a failure -> it stays', [answered(40), failed('provider_error', 60)], 40],
    ['a cancel -> it stays', [answered(40), { kind: 'cancelled', ...took(60) }], 40],
    ['a job without a call -> it stays', [answered(40), { kind: 'blocked', ...took(0) }], 40],
    ['a clock that was put back -> it stays', [answered(40), answered(-500)], 40],
  ])('%s', (_, outcomes, meanMs) => {
    expect(end(new ServiceTimes(), ...outcomes).meanMs).toBe(meanMs);
  });
});

describe('the jobs of ServiceTimes', () => {
  it('a thousand jobs -> count, mean and percentiles, which are at most a tenth too high', () => {
    let now = 0;
    const times = new ServiceTimes(() => now);
    for (let n = 1; n <= 1000; n += 1) end(times, answered(n));
    now = 4000;
    const { p50Ms, p99Ms, ...stats } = times.stats ?? { p50Ms: 0, p99Ms: 0 };
    expect(stats).toEqual({ count: 1000, overMs: 4000, meanMs: 501 });
    expect([p50Ms >= 500 && p50Ms <= 550, p99Ms >= 990 && p99Ms <= 1089]).toEqual([true, true]);
  });

  it('five minutes after a job -> it is forgotten, and how many were waiting then', () => {
    let now = 0;
    const times = new ServiceTimes(() => now);
    times.recordWaiting(7);
    expect(times.stats).toBeUndefined();
    end(times, answered(100));
    times.recordWaiting(8);
    for (now = 10_000; now <= 290_000; now += 10_000) {
      times.recordWaiting(now / 1000);
      end(times, answered(200));
    }
    now = 299_000;
    expect(times.stats).toMatchObject({ count: 30, overMs: 299_000, waitingBefore: 7 });
    now = 300_000;
    expect(times.stats).toMatchObject({ count: 29, overMs: 290_000, meanMs: 200, waitingBefore: 10 });
    now = 900_000;
    expect(times.stats).toBeUndefined();
  });

  it('a clock that jumps -> they say nothing that a heartbeat could not', () => {
    const times = end(new ServiceTimes(() => 0), ...[-5, 0, 0.3, 1e12].map(answered));
    const { meanMs: _, ...others } = times.stats ?? {};
    const schema = poolHeartbeatSchema.shape.service.unwrap().omit({ meanMs: true });
    expect(schema.safeParse(others).success).toBe(true);
    expect(times.stats?.p99Ms).toBeLessThan(4_000_000);
  });
});
