import { getEventListeners } from 'node:events';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { givenFields } from '../../../shared/given-fields.js';
import type { TimedCall } from '../../../workers/job/call.js';
import { CallSignal, endInTime } from '../../../workers/job/call-signal.js';
import { madeCallOf } from '../../support/calls.js';
import { openStream } from '../../support/running-jobs.js';

let call: CallSignal;

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  call.release();
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

interface Limits {
  inMs?: number;
  timeoutMs?: number;
  firstTokenTimeoutMs?: number;
  fallbackAfterMs?: number;
  firstDeltaInMs?: number;
}
const idleTimeoutMs = 5000;

function open({ inMs = 60_000, firstDeltaInMs = inMs, ...settings }: Limits, isStream: boolean): void {
  const now = Date.now();
  const deltas = isStream ? openStream() : undefined;
  const limits = { timeoutMs: 10_000, firstTokenTimeoutMs: 10_000, idleTimeoutMs, ...settings };
  const times = { deadline: now + inMs, firstDeltaBy: now + firstDeltaInMs, hasFallback: true };
  call = new CallSignal(madeCallOf({ ...times, ...givenFields({ deltas }), settings: limits }));
}

/** Plays steps: 'activity' or 'delta' of the provider, '200 ms' that pass, '300 ms: timeout' for the end after them. */
function play(steps: string): void {
  for (const step of steps.split(', ')) {
    const [ms, code] = step.split(' ms: ');
    if (step === 'activity') call.recordActivity();
    else if (step === 'delta') call.beginStream();
    else vi.advanceTimersByTime(Number.parseInt(ms ?? '', 10) - (code ? 1 : 0));
    expect(call.signal.aborted, step).toBe(false);
    if (code) vi.advanceTimersByTime(1);
    expect(call.signal.reason?.code, step).toBe(code);
  }
}

describe('CallSignal', () => {
  const begun = '9999 ms, delta, ';
  it.each<[string, Limits, string]>([
    ['call', { timeoutMs: 10, inMs: 20 }, '10 ms: provider_timeout'],
    ['call', { timeoutMs: 20, inMs: 10 }, '10 ms: timeout'],
    // The provider sends something, but no delta.
    ['stream', { firstTokenTimeoutMs: 300 }, '100 ms, activity, 200 ms: provider_timeout'],
    ['stream', { fallbackAfterMs: 300 }, '100 ms, activity, 200 ms: provider_timeout'],
    ['stream', { timeoutMs: 300 }, '100 ms, activity, 200 ms: provider_timeout'],
    ['stream', { firstDeltaInMs: 300 }, '100 ms, activity, 200 ms: timeout'],
    // A fallback would have no time.
    ['stream', { firstDeltaInMs: 300, fallbackAfterMs: 200 }, '100 ms, activity, 200 ms: timeout'],
    // Once it has begun, the provider has to show that it works, until the deadline; a later delta is no first one.
    ['stream', {}, `${begun}${'4999 ms, activity, '.repeat(10)}11 ms: timeout`],
    ['stream', {}, 'delta, 1000 ms, activity, 1000 ms, delta, 4000 ms: provider_timeout'],
  ])('a %s with %j, after which come %s', (kind, limits, steps) => {
    open(limits, kind === 'stream');
    play(steps);
  });

  it('a deadline that has passed -> ends at once', () => {
    open({ inMs: -60_000 }, false);
    vi.advanceTimersByTime(1);
    expect(call.signal.reason).toMatchObject({ code: 'timeout' });
  });

  it('a stream that is released in the middle -> never aborts', () => {
    open({}, true);
    call.beginStream();
    call.release();
    call.recordActivity();
    vi.advanceTimersByTime(120_000);
    expect(call.signal.aborted).toBe(false);
  });

  it('a stop, also one that has come before -> ends it with its reason', () => {
    const stopping = new AbortController();
    const reason = new Error('stopping');
    const before = new CallSignal(madeCallOf({ stop: stopping.signal }));
    stopping.abort(reason);
    call = new CallSignal(madeCallOf({ stop: stopping.signal }));
    expect([before.signal.reason, call.signal.reason]).toEqual([reason, reason]);
    before.release();
  });

  it('many that are released -> leave nothing, never abort, and cause no warning', async () => {
    const warn = vi.spyOn(process, 'emitWarning');
    const stopping = new AbortController();
    const calls = Array.from({ length: 100 }, () => new CallSignal(madeCallOf({ stop: stopping.signal })));
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
  const park = vi.fn(() => true);
  const settings = { timeoutMs: 10, firstTokenTimeoutMs: 10, fallbackAfterMs: 10, idleTimeoutMs: 10 };
  const openFirst = ({ isStream = false, isProbe = false }) => {
    const deltas = isStream ? openStream() : undefined;
    const limits = { deadline: Date.now() + 20_000, hasFallback: true, settings };
    return madeCallOf({ ...limits, ...givenFields({ deltas }) }, { isCompiling: true, isProbe, park });
  };
  let beginReply = () => {};
  /** A call that nothing but its signal ends. */
  const hang = ({ signal, begin }: TimedCall): Promise<never> =>
    new Promise((_, reject) => {
      beginReply = begin;
      signal.addEventListener('abort', () => reject(signal.reason));
    });
  beforeEach(() => {
    call = new CallSignal(madeCallOf());
    call.release();
  });

  it.each<[given: string, own: { isStream?: boolean; isProbe?: boolean }, steps: string]>([
    ['a schema that is new', {}, '19999 ms, 1 ms: timeout'],
    ['a schema that is new, streamed', { isStream: true }, '19999 ms, 1 ms: timeout'],
    // Others wait for a probe.
    ['a probe', { isProbe: true }, '10 ms: provider_timeout'],
    ['a stream that begins', { isStream: true }, '15000 ms, begins, 10 ms: provider_timeout'],
  ])(
    '%s (%j) -> has the deadline of the chat alone, but for a probe and what has begun: %s',
    async (_, own, steps) => {
      const one = openFirst(own);
      let ended: unknown;
      const ending = endInTime(one, hang).catch(({ code }) => {
        ended = code;
      });
      for (const step of steps.split(', ')) {
        const [ms = '', code] = step.split(' ms: ');
        if (step === 'begins') beginReply();
        else await vi.advanceTimersByTimeAsync(Number.parseInt(ms, 10));
        expect(ended, step).toBe(code);
      }
      await ending;
    },
  );

  it.each([
    ['a call that takes long -> its slot is parked, as of any other', false, 1],
    ['a reply that has begun -> it keeps its slot', true, 0],
  ])('%s', async (_, hasBegun, times) => {
    park.mockClear();
    const one = openFirst({ isStream: true });
    const failed = endInTime(one, hang).catch(() => undefined);
    vi.advanceTimersByTime(9);
    expect(park).not.toHaveBeenCalled();
    if (hasBegun) beginReply();
    vi.advanceTimersByTime(20_000);
    await failed;
    expect(park).toHaveBeenCalledTimes(times);
  });
});
