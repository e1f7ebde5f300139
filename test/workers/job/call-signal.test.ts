import { getEventListeners } from 'node:events';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { TimeLimit } from '../../../shared/failures.js';
import { givenFields } from '../../../shared/json/json.js';
import { CallSignal } from '../../../workers/job/call-chain.js';
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
  firstTokenBeforeFallbackMs?: number;
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

const signs: Readonly<Record<string, () => void>> = {
  lives: () => call.recordLife(),
  begins: () => call.begin(),
  shows: () => call.show(),
};

/** Plays steps: signs of the provider, '200 ms' that pass, '300 ms: timeout' for the end after them. */
function play(steps: string): void {
  for (const step of steps.split(', ')) {
    const [ms, code] = step.split(' ms: ');
    const sign = signs[step];
    if (sign) sign();
    else vi.advanceTimersByTime(Number.parseInt(ms ?? '', 10) - (code ? 1 : 0));
    expect(call.signal.aborted, step).toBe(false);
    if (code) vi.advanceTimersByTime(1);
    expect(call.signal.reason?.code, step).toBe(code);
  }
}

describe('CallSignal', () => {
  const shown = '9999 ms, lives, begins, shows, ';
  const working = '4999 ms, lives, '.repeat(9);
  it.each<[string, Limits, string]>([
    ['call', { timeoutMs: 10, inMs: 20 }, '10 ms: provider_timeout'],
    ['call', { timeoutMs: 20, inMs: 10 }, '10 ms: timeout'],
    ['call', { firstTokenTimeoutMs: 10, timeoutMs: 300 }, '300 ms: provider_timeout'],
    ['stream', { firstTokenTimeoutMs: 300 }, '300 ms: provider_timeout'],
    ['stream', { firstTokenTimeoutMs: 300, firstTokenBeforeFallbackMs: 60 }, '60 ms: provider_timeout'],
    // A model that thinks for 45 s, and says so, may go on; its silence may be as long as the longer of both times.
    [
      'stream',
      { firstTokenTimeoutMs: 300, timeoutMs: 50_000 },
      `99 ms, lives, ${working}4910 ms: provider_timeout`,
    ],
    ['stream', { firstTokenTimeoutMs: 300 }, '100 ms, lives, 100 ms, lives, 5000 ms: provider_timeout'],
    ['stream', { firstTokenTimeoutMs: 7000 }, '100 ms, lives, begins, 7000 ms: provider_timeout'],
    // Text that no reader sees is no answer, long as it may be.
    ['stream', { timeoutMs: 300 }, '100 ms, lives, begins, 100 ms, lives, 100 ms: provider_timeout'],
    ['stream', { firstDeltaInMs: 300 }, '100 ms, lives, begins, 200 ms: timeout'],
    // One that thinks is not asked twice.
    ['stream', { fallbackAfterMs: 300 }, '100 ms, lives, 200 ms: provider_timeout'],
    ['stream', { fallbackAfterMs: 300 }, '100 ms, lives, begins, 9900 ms: provider_timeout'],
    // A fallback would have no time.
    ['stream', { firstDeltaInMs: 300, fallbackAfterMs: 200 }, '100 ms, lives, 200 ms: timeout'],
    // Once a part is shown, the provider has to show that it works, until the deadline.
    ['stream', {}, `${shown}${'4999 ms, lives, '.repeat(10)}11 ms: timeout`],
    [
      'stream',
      { firstTokenTimeoutMs: 7000 },
      'lives, begins, shows, 1000 ms, lives, 5000 ms: provider_timeout',
    ],
  ])('a %s with %j, after which come %s', (kind, limits, steps) => {
    open(limits, kind === 'stream');
    play(steps);
  });

  const [timeoutMs, firstTokenTimeoutMs] = [300, 200];
  it.each<[string, Limits, string, TimeLimit]>([
    ['call', { timeoutMs }, '300 ms', { ms: timeoutMs, setting: 'timeoutMs' }],
    [
      'stream',
      { firstTokenTimeoutMs },
      '200 ms',
      { ms: firstTokenTimeoutMs, setting: 'firstTokenTimeoutMs' },
    ],
    ['stream', { fallbackAfterMs: 100 }, '100 ms', { ms: 100, setting: 'fallbackAfterMs' }],
    [
      'stream',
      { firstTokenTimeoutMs },
      'lives, 5000 ms',
      { ms: idleTimeoutMs, setting: 'idleTimeoutMs', fellSilent: true },
    ],
    [
      'stream',
      { firstTokenTimeoutMs: 7000 },
      'lives, 7000 ms',
      { ms: 7000, setting: 'firstTokenTimeoutMs', fellSilent: true },
    ],
  ])('a %s with %j, after which come %s -> names the limit that ended it', (kind, limits, steps, limit) => {
    open(limits, kind === 'stream');
    play(`${steps}: provider_timeout`);
    expect(call.signal.reason.facts.limit).toEqual(limit);
  });

  it('a deadline that has passed -> ends at once', () => {
    open({ inMs: -60_000 }, false);
    vi.advanceTimersByTime(1);
    expect(call.signal.reason).toMatchObject({ code: 'timeout' });
  });

  it('a stream that is released in the middle -> never aborts', () => {
    open({}, true);
    call.recordLife();
    call.show();
    call.release();
    call.recordLife();
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
