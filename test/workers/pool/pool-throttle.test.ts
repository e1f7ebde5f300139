import { beforeEach, describe, expect, it } from 'vitest';
import type { BreakerState } from '../../../workers/gate/breaker.js';
import type { LivePoolSettings } from '../../../workers/pool/live-settings.js';
import { PoolThrottle } from '../../../workers/pool/pool-throttle.js';
import { poolSettings } from '../../support/chat-jobs.js';

let throttle: PoolThrottle;
let breaker: { state: BreakerState; isProbing: boolean };
let settings: { current: LivePoolSettings };
let load: { inFlight: number };
let gate: { account: typeof breaker; parked: number };
let clock: { isOff: boolean };
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

beforeEach(() => {
  breaker = { state: 'closed', isProbing: false };
  settings = { current: poolSettings({ concurrency: 20 }) };
  load = { inFlight: 0 };
  gate = { account: breaker, parked: 0 };
  clock = { isOff: false };
  worker = createRecordingWorker();
  throttle = new PoolThrottle({ worker, settings, gate, load: () => load, clock });
});

const change = (own: Partial<LivePoolSettings>) => {
  settings.current = { ...settings.current, ...own };
};
function isTakingWhen(state: BreakerState) {
  breaker.state = state;
  throttle.apply();
  return worker.takes;
}

describe('apply', () => {
  it('the breaker is open, the clock off, or operators have paused the pool -> it takes no jobs', () => {
    const states = ['closed', 'open', 'half-open', 'closed'] as const;
    expect(states.map(isTakingWhen)).toEqual([true, false, true, true]);
    clock.isOff = true;
    expect(isTakingWhen('closed')).toBe(false);
    clock.isOff = false;
    expect(isTakingWhen('closed')).toBe(true);
    change({ intake: 'paused' });
    expect([isTakingWhen('closed'), isTakingWhen('half-open')]).toEqual([false, false]);
    change({ intake: 'draining' });
    expect(isTakingWhen('closed')).toBe(true);
  });

  it('the queue has a rate -> the worker has it for as long', () => {
    const { current } = settings;
    change({ rate: { max: 3, durationMs: 1000 } });
    throttle.apply();
    expect(worker.opts).toEqual({ limiter: { max: 3, duration: 1000 } });
    settings.current = current;
    throttle.apply();
    expect(worker.opts).toEqual({});
  });

  it.each<[string, BreakerState, Partial<typeof load & typeof breaker & { parked: number }>, number]>([
    ['the breaker is closed -> all', 'closed', {}, 20],
    ['jobs are parked -> another for each', 'closed', { parked: 7 }, 27],
    ['calls hang -> no more', 'closed', { inFlight: 30 }, 20],
    ['the breaker is half-open -> one to probe', 'half-open', {}, 1],
    ['it is, and jobs are parked -> one more', 'half-open', { inFlight: 7, parked: 7 }, 8],
    ['it is, and calls hang -> one more', 'half-open', { inFlight: 14 }, 15],
    ['it probes -> no more', 'half-open', { inFlight: 15, isProbing: true }, 15],
  ])('%s jobs at once', (_, state, { isProbing = false, parked = 0, inFlight = 0 }, concurrency) => {
    Object.assign(breaker, { state, isProbing });
    load.inFlight = inFlight;
    gate.parked = parked;
    throttle.apply();
    expect([worker.concurrency, throttle.concurrency]).toEqual([concurrency, concurrency - parked]);
  });

  it('a new concurrency -> effective at once', () => {
    for (const state of ['half-open', 'closed'] as const) isTakingWhen(state);
    change({ concurrency: 3 });
    throttle.apply();
    expect(worker.resumedWith).toEqual([1, 20, 3]);
  });
});

it('a worker that has not run -> kept from running only while it is to take nothing', () => {
  throttle.applyFirst();
  expect([worker.takes, worker.resumedWith]).toEqual([true, []]);
  change({ intake: 'paused' });
  throttle.applyFirst();
  expect(worker.takes).toBe(false);
});

it('changes of one turn of the event loop -> applied at once, and so is the next', async () => {
  for (const resumedWith of [[25], [25, 25]]) {
    for (gate.parked = 1; gate.parked < 5; gate.parked += 1) throttle.applySoon();
    await new Promise((resolve) => setImmediate(resolve));
    expect(worker.resumedWith).toEqual(resumedWith);
  }
});
