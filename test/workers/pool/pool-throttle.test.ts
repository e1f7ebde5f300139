import { beforeEach, describe, expect, it } from 'vitest';
import type { BreakerState } from '../../../workers/gate/breaker.js';
import type { LivePoolSettings } from '../../../workers/pool/live-settings.js';
import { PoolThrottle } from '../../../workers/pool/pool-throttle.js';
import { poolSettings } from '../../support/chat-jobs.js';

let throttle: PoolThrottle;
let breaker: { state: BreakerState; isProbing: boolean };
let settings: { current: LivePoolSettings };
let load: { inFlight: number; parked: number };
let worker: ReturnType<typeof createRecordingWorker>;

/** Records what the throttle decides. */
function createRecordingWorker() {
  return {
    concurrency: 20,
    opts: {} as { limiter?: { max: number; duration: number } },
    takes: true,
    /** Its concurrency at each `resume`. */
    resumedWith: [] as number[],
    async pause() {
      this.takes = false;
    },
    async resume() {
      this.takes = true;
      this.resumedWith.push(this.concurrency);
    },
  };
}

let clock: { isOff: boolean };
beforeEach(() => {
  breaker = { state: 'closed', isProbing: false };
  settings = { current: poolSettings({ concurrency: 20 }) };
  load = { inFlight: 0, parked: 0 };
  worker = createRecordingWorker();
  clock = { isOff: false };
  throttle = new PoolThrottle({ worker, settings, gate: { account: breaker }, load: () => load, clock });
});

function when(state: BreakerState, parked = 0) {
  breaker.state = state;
  load.parked = parked;
  throttle.apply();
  return { takes: worker.takes, concurrency: worker.concurrency };
}

describe('apply', () => {
  it('lets the pool take jobs only while the breaker is not open', () => {
    const states = ['closed', 'open', 'half-open', 'closed'] as const;
    expect(states.map((state) => when(state).takes)).toEqual([true, false, true, true]);
  });

  it('lets it take none while the clock is off, or operators have paused it', () => {
    clock.isOff = true;
    expect(when('closed').takes).toBe(false);
    clock.isOff = false;
    expect(when('closed').takes).toBe(true);
    settings.current = { ...settings.current, intake: 'paused' };
    expect([when('closed').takes, when('half-open').takes]).toEqual([false, false]);
    settings.current = { ...settings.current, intake: 'draining' };
    expect(when('closed').takes).toBe(true);
  });

  it('gives the worker the rate of the queue, for as long as there is one', () => {
    settings.current = { ...settings.current, rate: { max: 3, durationMs: 1000 } };
    when('closed');
    expect(worker.opts).toEqual({ limiter: { max: 3, duration: 1000 } });
    const { rate: _, ...unlimited } = settings.current;
    settings.current = unlimited;
    when('closed');
    expect(worker.opts).toEqual({});
  });

  it.each<[string, BreakerState, Partial<typeof load>, number]>([
    ['all when the breaker is closed', 'closed', {}, 20],
    ['another for each that is parked', 'closed', { parked: 7 }, 27],
    ['no more beside calls that hang', 'closed', { inFlight: 30 }, 20],
    ['one to probe', 'half-open', {}, 1],
    ['one to probe beside parked ones', 'half-open', { inFlight: 7, parked: 7 }, 8],
    ['one to probe beside calls that hang', 'half-open', { inFlight: 14 }, 15],
  ])('takes %s', (_, state, own, concurrency) => {
    Object.assign(load, own);
    expect(when(state, load.parked).concurrency).toBe(concurrency);
    expect(throttle.concurrency).toBe(concurrency - load.parked);
  });

  it('takes no other job until the probe has ended', () => {
    load.inFlight = 15;
    breaker.isProbing = true;
    expect(when('half-open').concurrency).toBe(15);
    load.inFlight = 12;
    expect(when('half-open').concurrency).toBe(12);
  });

  it('makes a new concurrency effective at once', () => {
    when('half-open');
    when('closed');
    expect(worker.resumedWith).toEqual([1, 20]);
    settings.current = { ...settings.current, concurrency: 3 };
    when('closed');
    expect(worker.resumedWith).toEqual([1, 20, 3]);
  });
});

describe('applyFirst', () => {
  it('keeps a worker that has not run from running only while it is to take nothing', () => {
    throttle.applyFirst();
    expect(worker.takes).toBe(true);
    expect(worker.resumedWith).toEqual([]);
    settings.current = { ...settings.current, intake: 'paused' };
    throttle.applyFirst();
    expect(worker.takes).toBe(false);
  });
});

describe('applySoon', () => {
  it('applies all changes of one turn of the event loop at once', async () => {
    for (load.parked = 1; load.parked < 5; load.parked += 1) throttle.applySoon();
    await new Promise((resolve) => setImmediate(resolve));
    expect(worker.resumedWith).toEqual([25]);
    throttle.applySoon();
    await new Promise((resolve) => setImmediate(resolve));
    expect(worker.resumedWith).toEqual([25, 25]);
  });
});
