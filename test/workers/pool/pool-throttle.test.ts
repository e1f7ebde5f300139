import { beforeEach, describe, expect, it } from 'vitest';
import type { BreakerState } from '../../../workers/job/breaker.js';
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
  throttle = new PoolThrottle({ worker, settings, account: breaker, load: () => load, clock });
});

function when(state: BreakerState, parked = 0) {
  breaker.state = state;
  load.parked = parked;
  throttle.apply();
  return { takes: worker.takes, concurrency: worker.concurrency };
}

describe('apply', () => {
  it('lets the pool take jobs only while the breaker is not open', () => {
    expect(when('closed').takes).toBe(true);
    expect(when('open').takes).toBe(false);
    expect(when('half-open').takes).toBe(true);
    expect(when('closed').takes).toBe(true);
  });

  it('lets it take none while the clock is off', () => {
    clock.isOff = true;
    expect(when('closed').takes).toBe(false);
    clock.isOff = false;
    expect(when('closed').takes).toBe(true);
  });

  it('lets it take none while operators have paused it, whatever else ends meanwhile', () => {
    settings.current = { ...settings.current, intake: 'paused' };
    expect(when('closed').takes).toBe(false);
    expect(when('half-open').takes).toBe(false);
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

  it('takes one at a time to probe, and all again when the breaker has closed', () => {
    expect(when('half-open').concurrency).toBe(1);
    expect(when('closed').concurrency).toBe(20);
  });

  it('takes another job for each that is parked', () => {
    expect(when('closed', 7).concurrency).toBe(27);
    expect(throttle.concurrency).toBe(20);
    load.inFlight = 7;
    expect(when('half-open', 7).concurrency).toBe(8);
  });

  it('takes one to probe beside calls that hang, and no other until it has ended', () => {
    load.inFlight = 14;
    expect(when('half-open').concurrency).toBe(15);
    load.inFlight = 15;
    breaker.isProbing = true;
    expect(when('half-open').concurrency).toBe(15);
    load.inFlight = 12;
    expect(when('half-open').concurrency).toBe(12);
    breaker.isProbing = false;
    load.inFlight = 0;
    expect(when('half-open').concurrency).toBe(1);
    load.inFlight = 30;
    expect(when('closed').concurrency).toBe(20);
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
