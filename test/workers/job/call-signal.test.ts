import { getEventListeners, once } from 'node:events';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { CallSignal } from '../../../workers/job/call-signal.js';
import { DeltaStream } from '../../../workers/job/delta-publisher.js';
import { callOf } from '../../support/calls.js';
import { takeJob } from '../../support/running-jobs.js';

let opened: CallSignal[] = [];

afterEach(() => {
  for (const call of opened) call.release();
  opened = [];
});

function open(limits: { timeoutMs: number; inMs: number; stop?: AbortSignal }): AbortSignal {
  const { timeoutMs, inMs, ...own } = limits;
  const call = new CallSignal(callOf({ deadline: Date.now() + inMs, settings: { timeoutMs }, ...own }));
  opened.push(call);
  return call.signal;
}

describe('CallSignal', () => {
  it.each([
    ["the provider's timeout when it takes too long", 'provider_timeout', { timeoutMs: 10, inMs: 60_000 }],
    ["the caller's when the deadline comes first", 'timeout', { timeoutMs: 60_000, inMs: 10 }],
    ["the caller's when the deadline has passed", 'timeout', { timeoutMs: 60_000, inMs: -60_000 }],
  ])('ends a call with %s', async (_, code, limits) => {
    const signal = open(limits);
    expect(signal.aborted).toBe(false);
    await once(signal, 'abort');
    expect(signal.reason).toMatchObject({ code });
  });

  it('ends it with the reason of the stop, also of one that has come before', () => {
    const stopping = new AbortController();
    const reason = new Error('stopping');
    const signal = open({ timeoutMs: 60_000, inMs: 60_000, stop: stopping.signal });
    stopping.abort(reason);
    expect(signal.reason).toBe(reason);
    expect(open({ timeoutMs: 60_000, inMs: 60_000, stop: stopping.signal }).reason).toBe(reason);
  });

  it('leaves nothing at the stop signal once it is released, and causes no warning, however many there are', async () => {
    const warnings: Error[] = [];
    const record = (warning: Error) => void warnings.push(warning);
    process.on('warning', record);
    const stopping = new AbortController();
    const calls = Array.from({ length: 100 }, () => new CallSignal(callOf({ stop: stopping.signal })));
    expect(getEventListeners(stopping.signal, 'abort')).toHaveLength(100);
    await new Promise((resolve) => setImmediate(resolve));
    process.off('warning', record);
    for (const call of calls) call.release();
    expect(getEventListeners(stopping.signal, 'abort')).toEqual([]);
    stopping.abort();
    expect(calls.filter(({ signal }) => signal.aborted)).toEqual([]);
    expect(warnings).toEqual([]);
  });

  it('never aborts once it is released', async () => {
    const released = new CallSignal(callOf({ settings: { timeoutMs: 10 } }));
    released.release();
    await once(open({ timeoutMs: 50, inMs: 60_000 }), 'abort');
    expect(released.signal.aborted).toBe(false);
  });
});

describe('the CallSignal of a stream', () => {
  const limits = { timeoutMs: 10_000, inMs: 60_000, firstDeltaInMs: 10_000, firstTokenTimeoutMs: 10_000 };
  type Limits = typeof limits & { fallbackAfterMs: number };
  const idleTimeoutMs = 5000;
  let call: CallSignal;

  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    call.release();
    expect(vi.getTimerCount()).toBe(0);
    vi.useRealTimers();
  });

  function openStream(own: Partial<Limits> = {}): void {
    const { inMs, firstDeltaInMs, ...settings } = { ...limits, ...own };
    const now = Date.now();
    call = new CallSignal(
      callOf({
        ...{ deadline: now + inMs, firstDeltaBy: now + firstDeltaInMs, hasFallback: true },
        deltas: new DeltaStream(takeJob(), undefined),
        settings: { ...settings, idleTimeoutMs },
      }),
    );
  }

  /** Ends the call after exactly this time. */
  function expectEnd(ms: number, code: string): void {
    vi.advanceTimersByTime(ms - 1);
    expect(call.signal.aborted).toBe(false);
    vi.advanceTimersByTime(1);
    expect(call.signal.reason).toMatchObject({ code });
  }

  it.each([
    ["the provider's time for its first delta", { firstTokenTimeoutMs: 300 }, 'provider_timeout'],
    ['the time after which its fallback is asked', { fallbackAfterMs: 300 }, 'provider_timeout'],
    ["the provider's time for a call", { timeoutMs: 300 }, 'provider_timeout'],
    ["the caller's time for the first delta", { firstDeltaInMs: 300 }, 'timeout'],
    [
      'that time although a fallback would have none',
      { firstDeltaInMs: 300, fallbackAfterMs: 200 },
      'timeout',
    ],
  ])('ends without a delta after %s, although the provider sends something else', (_, own, code) => {
    openStream(own);
    vi.advanceTimersByTime(100);
    call.recordActivity();
    expectEnd(200, code);
  });

  it('goes on past all of them once it has begun, for as long as the provider shows that it works', () => {
    openStream();
    vi.advanceTimersByTime(9999);
    call.beginStream();
    for (let n = 0; n < 10; n += 1) {
      vi.advanceTimersByTime(idleTimeoutMs - 1);
      call.recordActivity();
    }
    expect(call.signal.aborted).toBe(false);
    expectEnd(11, 'timeout');
  });

  it('ends when the provider is silent, also after a later delta, which is no first one', () => {
    openStream();
    call.beginStream();
    vi.advanceTimersByTime(1000);
    call.recordActivity();
    vi.advanceTimersByTime(1000);
    call.beginStream();
    expectEnd(idleTimeoutMs - 1000, 'provider_timeout');
  });

  it('that is released in the middle never aborts', () => {
    openStream();
    call.beginStream();
    call.release();
    call.recordActivity();
    vi.advanceTimersByTime(120_000);
    expect(call.signal.aborted).toBe(false);
  });
});
