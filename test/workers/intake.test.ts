import { beforeEach, describe, expect, it } from 'vitest';
import type { BreakerState } from '../../workers/breaker.js';
import { createIntake, type Intake } from '../../workers/intake.js';

let intake: Intake;
let breaker: { state: BreakerState; isProbing: boolean };
let hold: { leftMs: number };
let load: { inFlight: number };
let worker: ReturnType<typeof createRecordingWorker>;

/** Keeps what the intake decides. */
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
  hold = { leftMs: 0 };
  load = { inFlight: 0 };
  worker = createRecordingWorker();
  clock = { isOff: false };
  intake = createIntake({ worker, breaker, hold, load, clock, concurrency: 20 });
});

function when(state: BreakerState, leftMs: number) {
  breaker.state = state;
  hold.leftMs = leftMs;
  intake.adjust();
  return { takes: worker.takes, concurrency: worker.concurrency };
}

describe('adjust', () => {
  it('lets the pool take jobs only while neither the breaker nor the provider is against it', () => {
    expect(when('closed', 0).takes).toBe(true);
    expect(when('closed', 500).takes).toBe(false);
    expect(when('open', 500).takes).toBe(false);
    expect(when('open', 0).takes).toBe(false);
    expect(when('half-open', 500).takes).toBe(false);
    expect(when('half-open', 0).takes).toBe(true);
    expect(when('closed', 0).takes).toBe(true);
  });

  it('lets it take none while the clock is off', () => {
    clock.isOff = true;
    expect(when('closed', 0).takes).toBe(false);
    clock.isOff = false;
    expect(when('closed', 0).takes).toBe(true);
  });

  it('takes one at a time to probe, also when a hold ends meanwhile, and all again when the provider is well', () => {
    expect(when('half-open', 0).concurrency).toBe(1);
    when('half-open', 500);
    expect(when('half-open', 0).concurrency).toBe(1);
    expect(when('closed', 0).concurrency).toBe(20);
  });

  it('takes one to probe beside calls that hang, and no other until it has ended', () => {
    load.inFlight = 14;
    expect(when('half-open', 0).concurrency).toBe(15);
    load.inFlight = 15;
    breaker.isProbing = true;
    expect(when('half-open', 0).concurrency).toBe(15);
    load.inFlight = 12;
    expect(when('half-open', 0).concurrency).toBe(12);
    breaker.isProbing = false;
    load.inFlight = 0;
    expect(when('half-open', 0).concurrency).toBe(1);
    load.inFlight = 30;
    expect(when('closed', 0).concurrency).toBe(20);
  });

  it('makes a new concurrency count at once', () => {
    when('half-open', 0);
    when('closed', 0);
    expect(worker.resumedWith).toEqual([1, 20]);
  });
});
