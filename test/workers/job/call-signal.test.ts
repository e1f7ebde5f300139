import { getEventListeners } from 'node:events';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Call } from '../../../workers/job/call.js';
import { CallSignal, endInTime } from '../../../workers/job/call-signal.js';
import { DeltaStream } from '../../../workers/job/delta-publisher.js';
import { ModelMemory } from '../../../workers/job/model-memory.js';
import { callOf } from '../../support/calls.js';
import { takeJob } from '../../support/running-jobs.js';

let call: CallSignal;

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  call.release();
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

/** Ends the call after exactly this time. */
function expectEnd(ms: number, code: string): void {
  vi.advanceTimersByTime(ms - 1);
  expect(call.signal.aborted).toBe(false);
  vi.advanceTimersByTime(1);
  expect(call.signal.reason).toMatchObject({ code });
}

describe('CallSignal', () => {
  it.each([
    ["the provider's timeout when it takes too long", 10, 'provider_timeout', { timeoutMs: 10, inMs: 20 }],
    ["the caller's when the deadline comes first", 10, 'timeout', { timeoutMs: 20, inMs: 10 }],
  ])('ends a call with %s', (_, afterMs, code, { timeoutMs, inMs }) => {
    call = new CallSignal(callOf({ deadline: Date.now() + inMs, settings: { timeoutMs } }));
    expectEnd(afterMs, code);
  });

  it('ends it at once when the deadline has passed', () => {
    call = new CallSignal(callOf({ deadline: Date.now() - 60_000 }));
    vi.advanceTimersByTime(1);
    expect(call.signal.reason).toMatchObject({ code: 'timeout' });
  });

  it('ends it with the reason of the stop, also of one that has come before', () => {
    const stopping = new AbortController();
    const reason = new Error('stopping');
    const before = new CallSignal(callOf({ stop: stopping.signal }));
    stopping.abort(reason);
    call = new CallSignal(callOf({ stop: stopping.signal }));
    expect([before.signal.reason, call.signal.reason]).toEqual([reason, reason]);
    before.release();
  });

  it('leaves nothing once it is released, never aborts, and causes no warning, however many there are', async () => {
    const warn = vi.spyOn(process, 'emitWarning');
    const stopping = new AbortController();
    const calls = Array.from({ length: 100 }, () => new CallSignal(callOf({ stop: stopping.signal })));
    call = calls[0] as CallSignal;
    expect(getEventListeners(stopping.signal, 'abort')).toHaveLength(100);
    for (const each of calls) each.release();
    expect(getEventListeners(stopping.signal, 'abort')).toEqual([]);
    stopping.abort();
    vi.advanceTimersByTime(60_000);
    expect(calls.filter(({ signal }) => signal.aborted)).toEqual([]);
    expect(warn).not.toHaveBeenCalled();
    warn.mockRestore();
  });
});

describe('the first use of a schema', () => {
  const memory = new ModelMemory();
  const park = vi.fn();
  const circuit = {
    ...{ run: () => expect.unreachable(), park, cooldown: { leftMs: 0 } },
    ...{ budget: { earn: () => {}, spend: () => true }, memory },
  };
  const settings = { timeoutMs: 10, firstTokenTimeoutMs: 10, fallbackAfterMs: 10, idleTimeoutMs: 10 };
  const open = (schema: string, isStream = false) => {
    const deltas = isStream ? new DeltaStream(takeJob(), undefined) : undefined;
    const limits = { deadline: Date.now() + 20_000, hasFallback: true, settings };
    return callOf({ ...limits, ...(deltas && { deltas }), circuit, schema });
  };
  /** A call that nothing but its signal ends. */
  const hang = (one: Call): Promise<never> =>
    new Promise((_, reject) => {
      one.signal.addEventListener('abort', () => reject(one.signal.reason));
    });
  beforeEach(() => {
    call = new CallSignal(callOf());
    call.release();
  });

  it.each([false, true])('has the deadline of the chat alone (stream: %s)', async (isStream) => {
    const one = open('unused', isStream);
    const failed = expect(endInTime(one, hang)).rejects.toMatchObject({ code: 'timeout' });
    vi.advanceTimersByTime(19_999);
    expect([one.isCompiling, one.signal.aborted]).toEqual([true, false]);
    vi.advanceTimersByTime(1);
    await failed;
    expect(open('unused').isCompiling).toBe(false);
  });

  it('ends with the first success, after which the usual limits apply; with a failure it does not', async () => {
    await expect(endInTime(open('used'), () => Promise.reject(new Error('x')))).rejects.toThrow('x');
    const first = open('used');
    await endInTime(first, async () => 'done');
    const second = open('used');
    const failed = expect(endInTime(second, hang)).rejects.toMatchObject({ code: 'provider_timeout' });
    vi.advanceTimersByTime(10);
    await failed;
    expect([first.isCompiling, second.isCompiling]).toEqual([true, false]);
  });

  it.each([
    ['keeps its slot no longer than any other call', 'slow', false, 1],
    ['keeps it when its reply has begun', 'begun', true, 0],
  ])('%s', async (_, schema, hasBegun, times) => {
    park.mockClear();
    const one = open(schema, true);
    const failed = endInTime(one, hang).catch(() => undefined);
    vi.advanceTimersByTime(9);
    expect(park).not.toHaveBeenCalled();
    if (hasBegun) one.begin();
    vi.advanceTimersByTime(20_000);
    await failed;
    expect(park.mock.calls).toEqual(Array(times).fill([one]));
  });

  it('has the usual limits where it probes for a breaker: others wait for that', async () => {
    const one = open('probing');
    one.isProbe = true;
    const failed = expect(endInTime(one, hang)).rejects.toMatchObject({ code: 'provider_timeout' });
    vi.advanceTimersByTime(10);
    await failed;
    expect(one.isCompiling).toBe(true);
  });

  it('leaves a stream that has begun its usual limits', async () => {
    const one = open('streamed', true);
    const failed = expect(endInTime(one, hang)).rejects.toMatchObject({ code: 'provider_timeout' });
    vi.advanceTimersByTime(15_000);
    one.begin();
    vi.advanceTimersByTime(10);
    await failed;
  });
});

describe('the CallSignal of a stream', () => {
  const limits = { timeoutMs: 10_000, inMs: 60_000, firstDeltaInMs: 10_000, firstTokenTimeoutMs: 10_000 };
  type Limits = typeof limits & { fallbackAfterMs: number };
  const idleTimeoutMs = 5000;

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

  it.each([
    ["the provider's time for its first delta", { firstTokenTimeoutMs: 300 }, 'provider_timeout'],
    ['the time after which its fallback is asked', { fallbackAfterMs: 300 }, 'provider_timeout'],
    ["the provider's time for a call", { timeoutMs: 300 }, 'provider_timeout'],
    ["the caller's time for the first delta", { firstDeltaInMs: 300 }, 'timeout'],
    ['that, if a fallback would have no time', { firstDeltaInMs: 300, fallbackAfterMs: 200 }, 'timeout'],
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
