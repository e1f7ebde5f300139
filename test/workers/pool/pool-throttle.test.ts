import { beforeEach, describe, expect, it } from 'vitest';
import type { BreakerState } from '../../../workers/job/breaker.js';
import { createPoolThrottle, type PoolThrottle } from '../../../workers/pool/pool-throttle.js';

let throttle: PoolThrottle;
let breaker: { state: BreakerState; isProbing: boolean };
let slots: { away: number };
let load: { inFlight: number };
let worker: ReturnType<typeof createRecordingWorker>;

/** Keeps what the throttle decides. */
function createRecordingWorker() {
  return {
    concurrency: 20,
    takes: true,
    /** Concurrencies at the moments in which it was made to count. */
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
  slots = { away: 0 };
  load = { inFlight: 0 };
  worker = createRecordingWorker();
  clock = { isOff: false };
  throttle = createPoolThrottle({ worker, breaker, load, slots, clock, concurrency: 20 });
});

function when(state: BreakerState, away = 0) {
  breaker.state = state;
  slots.away = away;
  throttle.adjust();
  return { takes: worker.takes, concurrency: worker.concurrency };
}

describe('adjust', () => {
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

  it('takes one at a time to probe, and all again when the provider is well', () => {
    expect(when('half-open').concurrency).toBe(1);
    expect(when('closed').concurrency).toBe(20);
  });

  it('takes another job for each that has no slot', () => {
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

  it('makes a new concurrency count at once', () => {
    when('half-open');
    when('closed');
    expect(worker.resumedWith).toEqual([1, 20]);
  });
});
