import { describe, expect, it } from 'vitest';
import type { FailureCode } from '../../../shared/failures.js';
import { poolHeartbeatSchema } from '../../../shared/protocol/messages.js';
import type { Outcome } from '../../../shared/protocol/outcome.js';
import { ServiceTimes } from '../../../workers/pool/service-times.js';

const took = (providerMs: number) => ({ queueMs: 0, providerMs });
const answer = (providerMs: number): Outcome => ({ kind: 'ok', text: '', model: 'm', ...took(providerMs) });
const failure = (code: FailureCode, providerMs: number): Outcome => ({
  ...{ kind: 'failed', code, retryable: true },
  ...took(providerMs),
});

const record = (times: ServiceTimes, own: Outcome) => times.ended(undefined, { own, outcome: own });
/** A job that was answered after this many milliseconds. */
const end = (times: ServiceTimes, providerMs: number) => record(times, answer(providerMs));

describe('the mean of ServiceTimes', () => {
  it('knows no mean before the first call, takes the first for it, and then follows slowly', () => {
    const times = new ServiceTimes();
    expect(times.meanMs).toBeUndefined();
    end(times, 40);
    expect(times.meanMs).toBe(40);
    end(times, 20);
    expect(times.meanMs).toBe(39);
    for (let n = 0; n < 100; n += 1) end(times, 1);
    expect(times.meanMs).toBeLessThan(4);
  });

  it.each<[string, Outcome, number]>([
    ['only that calls may take longer from one that timed out', failure('provider_timeout', 60), 41],
    ['nothing from one that timed out earlier', failure('provider_timeout', 20), 40],
    ['nothing from one that failed', failure('provider_error', 60), 40],
    ['nothing from one that was cancelled', { kind: 'cancelled', ...took(60) }, 40],
    ['nothing from a job without a call', { kind: 'blocked', ...took(0) }, 40],
    ['nothing by a clock that was put back', answer(-500), 40],
  ])('learns %s', (_, outcome, meanMs) => {
    const times = new ServiceTimes();
    end(times, 40);
    record(times, outcome);
    expect(times.meanMs).toBe(meanMs);
  });
});

const serviceSchema = poolHeartbeatSchema.shape.service.unwrap();

describe('the jobs of ServiceTimes', () => {
  it('gives count, mean and percentiles, which are at most a tenth too high', () => {
    let now = 0;
    const times = new ServiceTimes(() => now);
    for (let n = 1; n <= 1000; n += 1) end(times, n);
    now = 4000;
    const { p50Ms, p99Ms, ...stats } = times.stats ?? { p50Ms: 0, p99Ms: 0 };
    expect(stats).toEqual({ count: 1000, overMs: 4000, meanMs: 501 });
    expect([p50Ms >= 500 && p50Ms <= 550, p99Ms >= 990 && p99Ms <= 1089]).toEqual([true, true]);
  });

  it('forgets a job after five minutes, and in which slice of time it fell', () => {
    let now = 0;
    const times = new ServiceTimes(() => now);
    end(times, 100);
    for (now = 10_000; now <= 290_000; now += 10_000) end(times, 200);
    now = 299_000;
    expect(times.stats).toMatchObject({ count: 30, overMs: 299_000 });
    now = 300_000;
    expect(times.stats).toMatchObject({ count: 29, overMs: 290_000, meanMs: 200 });
    now = 900_000;
    expect(times.stats).toBeUndefined();
  });

  it('remembers how many were waiting at the beginning of its window', () => {
    let now = 0;
    const times = new ServiceTimes(() => now);
    times.recordWaiting(7);
    expect(times.stats).toBeUndefined();
    for (const waiting of [7, 8, 9]) {
      times.recordWaiting(waiting);
      end(times, 1);
      now += 6000;
    }
    expect(times.stats?.waitingBefore).toBe(7);
    now = 306_000;
    expect(times.stats?.waitingBefore).toBe(9);
  });

  it('says nothing that a heartbeat could not, also after a clock has jumped', () => {
    const times = new ServiceTimes(() => 0);
    for (const tookMs of [-5, 0, 0.3, 1e12]) end(times, tookMs);
    const { meanMs: _, ...others } = times.stats ?? {};
    expect(serviceSchema.omit({ meanMs: true }).safeParse(others).success).toBe(true);
    expect(times.stats?.p99Ms).toBeLessThan(4_000_000);
  });
});
