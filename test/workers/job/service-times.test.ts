import { describe, expect, it } from 'vitest';
import { poolHeartbeatSchema } from '../../../shared/protocol/messages.js';
import { ServiceTimes } from '../../../workers/job/service-times.js';

const serviceSchema = poolHeartbeatSchema.shape.service.unwrap();

describe('ServiceTimes', () => {
  it('knows nothing before the first job has ended', () => {
    const times = new ServiceTimes(() => 0);
    times.recordWaiting(3);
    expect(times.stats).toBeUndefined();
  });

  it('gives count, mean and percentiles, which are at most a tenth too high', () => {
    let now = 0;
    const times = new ServiceTimes(() => now);
    for (let n = 1; n <= 1000; n += 1) times.record(n);
    now = 4000;
    const { p50Ms, p99Ms, ...stats } = times.stats ?? { p50Ms: 0, p99Ms: 0 };
    expect(stats).toEqual({ count: 1000, overMs: 4000, meanMs: 501 });
    expect([p50Ms >= 500 && p50Ms <= 550, p99Ms >= 990 && p99Ms <= 1089]).toEqual([true, true]);
  });

  it('forgets a job after five minutes, and in which slice of time it fell', () => {
    let now = 0;
    const times = new ServiceTimes(() => now);
    times.record(100);
    for (now = 10_000; now <= 290_000; now += 10_000) times.record(200);
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
    for (const waiting of [7, 8, 9]) {
      times.recordWaiting(waiting);
      times.record(1);
      now += 6000;
    }
    expect(times.stats?.waitingBefore).toBe(7);
    now = 306_000;
    expect(times.stats?.waitingBefore).toBe(9);
  });

  it('says nothing that a heartbeat could not, whatever a clock did', () => {
    const times = new ServiceTimes(() => 0);
    for (const tookMs of [-5, 0, 0.3, 1e12]) times.record(tookMs);
    const { meanMs: _, ...others } = times.stats ?? {};
    expect(serviceSchema.omit({ meanMs: true }).safeParse(others).success).toBe(true);
    expect(times.stats?.p99Ms).toBeLessThan(4_000_000);
  });

  it('has the same size after a million jobs', () => {
    let now = 0;
    const times = new ServiceTimes(() => now);
    for (let n = 0; n < 1_000_000; n += 1) {
      now += 1;
      times.record(n % 5000);
    }
    expect(times.stats?.count).toBeLessThanOrEqual(300_000);
    expect(JSON.stringify(times.stats).length).toBeLessThan(150);
  });
});
