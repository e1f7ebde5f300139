import { getEventListeners } from 'node:events';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Failure } from '../../../shared/failures.js';
import { givenFields } from '../../../shared/given-fields.js';
import { CompilingCalls } from '../../../workers/gate/compiling-calls.js';
import { Cancelled, LockLost } from '../../../workers/gate/ends.js';
import type { Pass } from '../../../workers/gate/gated-call.js';
import { Slots } from '../../../workers/gate/slots.js';
import type { TimedCall } from '../../../workers/job/call.js';
import { CallSignal, endInTime } from '../../../workers/job/call-signal.js';
import { callOf, madeCallOf } from '../../support/calls.js';
import { openGate, openSlot } from '../../support/gate.js';
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

describe('a call whose schema is compiled first', () => {
  const deadline = () => Date.now() + 20_000;
  const settings = { timeoutMs: 10, firstTokenTimeoutMs: 10, fallbackAfterMs: 5, idleTimeoutMs: 30 };
  /** The signs of the latest call. */
  let reply: Record<string, () => void>;
  /** A call that nothing but its signal ends. */
  const hang = ({ signal, onLife, onBegin, show }: TimedCall): Promise<never> =>
    new Promise((_, reject) => {
      reply = { lives: onLife, begins: onBegin, shows: show };
      signal.addEventListener('abort', () => reject(signal.reason));
    });
  /** One of two calls that may be made without a slot. */
  const openCompiling = () => {
    const compiling = new CompilingCalls({ concurrency: () => 2, hasRoom: () => true });
    return { compiling, outlast: () => compiling.outlast({ user: 'M', slot: openSlot() }) };
  };
  beforeEach(() => {
    call = new CallSignal(madeCallOf());
    call.release();
  });

  it.each<[given: string, pass: Partial<Pass>, isStream: boolean, steps: string, places: number]>([
    ['there is a place', {}, false, '10 ms, takes, 19989 ms, 1 ms: timeout', 1],
    ['there is a place, streamed, with a fallback', {}, true, '10 ms, takes, 19989 ms, 1 ms: timeout', 1],
    [
      'it lives, and begins then',
      {},
      true,
      '9 ms, lives, 1 ms, takes, 9000 ms, lives, begins, 29 ms, 1 ms: provider_timeout',
      1,
    ],
    ['it has begun before', {}, true, '9 ms, begins, shows, 29 ms, 1 ms: provider_timeout', 0],
    ['there is no place', { outlast: () => undefined }, false, '9 ms, 1 ms: provider_timeout', 0],
    // Others wait for a probe.
    ['it is a probe', { isProbe: true }, false, '9 ms, 1 ms: provider_timeout', 0],
    ['it was used before', { isCompiling: false }, false, '9 ms, 1 ms: provider_timeout', 0],
  ])('%s (%j, streamed: %s) -> %s', async (_, pass, isStream, steps, places) => {
    const { compiling, outlast } = openCompiling();
    const asking = vi.fn(outlast);
    const deltas = isStream ? openStream() : undefined;
    const own = { ...givenFields({ deltas }), deadline: deadline(), hasFallback: true, settings };
    let ended: unknown;
    const ending = endInTime(madeCallOf(own, { isCompiling: true, outlast: asking, ...pass }), hang).catch(
      ({ code }) => {
        ended = code;
      },
    );
    for (const step of steps.split(', ')) {
      const [ms = '', code] = step.split(' ms: ');
      const sign = reply[step];
      if (sign) sign();
      else if (step === 'takes') expect(outlast()).toBeUndefined();
      else await vi.advanceTimersByTimeAsync(Number.parseInt(ms, 10));
      expect(ended, step).toBe(code);
    }
    await ending;
    expect(asking).toHaveBeenCalledTimes(places);
    expect(compiling.outlast({ user: 'M', slot: openSlot() })).toBeDefined();
  });

  it.each<[string, (call: PromiseWithResolvers<string>, stop: AbortController) => void]>([
    ['a reply', ({ resolve }) => resolve('done')],
    ['a failure', ({ reject }) => reject(new Failure('provider_error'))],
    ['a cancelled job', (_, stop) => stop.abort(new Cancelled())],
    ['a lost lock', (_, stop) => stop.abort(new LockLost())],
    ['a worker that stops', (_, stop) => stop.abort(new Failure('provider_unavailable'))],
    ['its deadline', () => vi.advanceTimersByTime(20_000)],
  ])('%s -> its place is for the next', async (_, end) => {
    const { outlast } = openCompiling();
    const [made, stop] = [Promise.withResolvers<string>(), new AbortController()];
    const own = { deadline: deadline(), settings, stop: stop.signal };
    const ending = endInTime(madeCallOf(own, { isCompiling: true, outlast }), (timed) =>
      Promise.race([made.promise, hang(timed)]),
    );
    vi.advanceTimersByTime(10);
    expect(outlast()).toBeUndefined();
    end(made, stop);
    await ending.catch(() => undefined);
    expect(outlast()).toBeDefined();
  });

  it('30 new schemas of one user, and others of another, where two calls may run -> four at once', async () => {
    const slots = new Slots({ size: () => 2, onChange: () => {} });
    const { gate, close } = openGate({ concurrency: 2 });
    const running: string[] = [];
    let most = 0;
    const ask = async (user: string, priority: number, schema: string) => {
      const slot = slots.open({ priority, addedAt: 0 });
      await slot.take();
      const own = { user, slot, schema, deadline: deadline(), settings };
      const made = gate.run(callOf(own), ({ pass }) =>
        endInTime({ ...madeCallOf(own), pass }, (timed) => {
          running.push(user);
          most = Math.max(most, running.length);
          return hang(timed).finally(() => running.splice(running.indexOf(user), 1));
        }),
      );
      const { code } = await made.catch((error) => error);
      slot.close();
      return code;
    };
    const ofM = Array.from({ length: 30 }, (_, n) => ask('M', 1, `M ${n}`));
    await vi.advanceTimersByTimeAsync(45);
    expect([most, running]).toEqual([3, ['M', 'M', 'M']]);
    const ofV = Array.from({ length: 2 }, (_, n) => ask('V', 0, `V ${n}`));
    await vi.advanceTimersByTimeAsync(100);
    expect([most, running.toSorted()]).toEqual([4, ['M', 'M', 'M', 'V']]);
    await vi.advanceTimersByTimeAsync(20_000);
    const [first, ...others] = await Promise.all(ofM);
    expect([first, new Set(others)]).toEqual(['timeout', new Set(['provider_timeout'])]);
    expect(await Promise.all(ofV)).toEqual(['timeout', 'provider_timeout']);
    close();
  });
});
