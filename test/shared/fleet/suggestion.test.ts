import { describe, expect, it } from 'vitest';
import { suggestConcurrency } from '../../../shared/fleet/live-pools.js';
import type { PoolHeartbeat } from '../../../shared/protocol/messages.js';
import { heartbeatOf } from '../../support/heartbeats.js';

type Service = NonNullable<PoolHeartbeat['service']>;

const heartbeat = (service?: Partial<Service>, waiting = 0, waitingAsync = 0) =>
  heartbeatOf({
    ...{ concurrency: 5, waiting, waitingAsync },
    ...(service && {
      service: { count: 300, overMs: 300_000, meanMs: 2000, p50Ms: 1500, p99Ms: 9000, ...service },
    }),
  });

describe('suggestConcurrency', () => {
  it('is arrivals times mean time, and 30 % more, rounded up, for the fleet and each of its workers', () => {
    const workers = [heartbeat({}), heartbeat({ count: 600, meanMs: 5000, p99Ms: 12_000 }), heartbeat()];
    // 3 a second, 4 s each: 12 at once, and 15.6 with headroom.
    expect(suggestConcurrency(workers)).toEqual({
      ...{ concurrency: 16, perWorker: 6, arrivalsPerSecond: 3, meanMs: 4000, p50Ms: 1500, p99Ms: 12_000 },
      ...{ jobs: 900, overMs: 300_000 },
    });
  });

  it('is absent below 30 jobs of all workers, and of workers that say nothing', () => {
    expect(suggestConcurrency([heartbeat({ count: 14 }), heartbeat({ count: 15 })])).toBeUndefined();
    expect(suggestConcurrency([heartbeat({ count: 15 }), heartbeat({ count: 15 })])).toBeDefined();
    expect(suggestConcurrency([heartbeat()])).toBeUndefined();
    expect(suggestConcurrency([])).toBeUndefined();
  });

  it('is absent in the first five minutes, and below the jobs that a worker has in flight', () => {
    expect(suggestConcurrency([heartbeat({ overMs: 289_999 })])).toBeUndefined();
    const busy = (inFlight: number) => suggestConcurrency([{ ...heartbeat({}), inFlight }, heartbeat()]);
    expect(busy(2)?.perWorker).toBe(2);
    expect(busy(3)).toBeUndefined();
  });

  it('counts as arrived what waits now and did not at the beginning, once, as the oldest worker knows it', () => {
    const workers = [
      heartbeat({ waitingBefore: 100, overMs: 20_000, count: 20 }, 700),
      heartbeat({ waitingBefore: 50 }, 250, 400),
    ];
    expect(suggestConcurrency(workers)?.arrivalsPerSecond).toBe(4);
    expect(suggestConcurrency([heartbeat({ waitingBefore: 150 })])?.arrivalsPerSecond).toBe(0.5);
  });

  it('suggests at least one, and no more than can be set, whatever heartbeats say', () => {
    expect(suggestConcurrency([heartbeat({ waitingBefore: 1_000_000 })])).toMatchObject({
      ...{ concurrency: 1, perWorker: 1, arrivalsPerSecond: 0 },
    });
    const huge = { count: 1_000_000_000, overMs: 290_000, meanMs: 86_400_000 };
    expect(suggestConcurrency([heartbeat(huge, 1e300)])).toMatchObject({ concurrency: 1_000_000 });
  });
});
