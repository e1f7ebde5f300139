import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Failure } from '../../../shared/failures.js';
import { Breaker, type BreakerState, type BreakerTimes } from '../../../workers/job/breaker.js';
import { CallSamples, CutForFallback } from '../../../workers/job/call-samples.js';
import { Cancelled, LockLost } from '../../../workers/job/running-job.js';
import { UserBreaker } from '../../../workers/job/user-breaker.js';
import { unusableAnswer } from '../../../workers/providers/error-classification.js';
import { callOf } from '../../support/calls.js';

const resetMs = 20;
/** Read when the first call fails. */
let times: BreakerTimes;
let breaker: Breaker;
let changes: BreakerState[];

beforeEach(() => {
  vi.useFakeTimers();
  times = { timeoutMs: 1000, resetMs };
  changes = [];
  breaker = new Breaker({
    times: () => times,
    samples: new CallSamples(new UserBreaker({ resetMs: () => resetMs, onChange: () => {} })),
    onChange: (state) => changes.push(state),
  });
});
afterEach(() => {
  breaker.dispose();
  vi.useRealTimers();
});

interface EndedCall {
  count?: number;
  afterMs?: number;
  /** Whether the provider has begun its reply by then. */
  hasBegun?: boolean;
  /** Whether its schema is compiled first. */
  isCompiling?: boolean;
}

/** A call that ends when the test says so: with `done`, or the code or name of its error. */
function startCall({ isCompiling = false, ...own }: Pick<EndedCall, 'hasBegun' | 'isCompiling'> = {}) {
  const calling = Object.assign(callOf(own), { isCompiling });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  // The breaker may refuse the call.
  promise.catch(() => undefined);
  const ended = breaker
    .run(calling, () => promise)
    .then(
      () => 'done',
      (error) => (error instanceof Failure ? error.code : error.name),
    );
  return { calling, ended, resolve, reject };
}

/** Calls one after another, each with this end; gives the end of the last. */
async function call(error?: Error, { count = 1, afterMs = 0, ...own }: EndedCall = {}) {
  let ended = '';
  for (let n = 0; n < count; n += 1) {
    const { resolve, reject, ...started } = startCall(own);
    await vi.advanceTimersByTimeAsync(afterMs);
    if (error) reject(error);
    else resolve();
    ended = await started.ended;
    await vi.advanceTimersByTimeAsync(0);
  }
  return ended;
}
const bad = new Failure('provider_error');
const open = () => call(bad, { count: 5 });
const halfOpen = async () => {
  await open();
  await vi.advanceTimersByTimeAsync(resetMs);
};

describe('Breaker', () => {
  it.each(['provider_error', 'provider_timeout'] as const)(
    'opens at the fifth %s and not before, and throws what the call does',
    async (code) => {
      expect(await call(new Failure(code), { count: 4 })).toBe(code);
      expect([breaker.state, breaker.reason]).toEqual(['closed', undefined]);
      const last = new Failure(code);
      await expect(breaker.run(callOf(), () => Promise.reject(last))).rejects.toBe(last);
      await vi.advanceTimersByTimeAsync(0);
      expect([breaker.state, breaker.reason]).toEqual(['open', code]);
    },
  );

  it('stays closed while at least half of the calls are good', async () => {
    for (let n = 0; n < 20; n += 1) {
      await call();
      await call(bad);
    }
    expect(breaker.state).toBe('closed');
  });

  it.each<[string, Failure]>([
    ['a refusal', new Failure('provider_rejected')],
    ['a rate limit', new Failure('provider_rate_limited')],
    ['blocked content', new Failure('content_blocked')],
    ['a deadline', new Failure('timeout')],
    ['a fault of this service', new Failure('internal')],
    ['an unusable answer', new Failure('provider_error', { retryable: false })],
    ['a reply that is not the JSON that the caller asks for', unusableAnswer('malformed_json')],
    ['a call of a tool that the caller does not offer', unusableAnswer('unknown_tool')],
    ['a call that the model could not write down', unusableAnswer('malformed_arguments')],
    ['a shutdown', new Failure('provider_unavailable')],
  ])('does not hold %s against the provider, nor for it', async (_, failure) => {
    await call(bad, { count: 4 });
    await call(failure, { count: 50 });
    expect(breaker.state).toBe('closed');
    await call(bad);
    expect(breaker.state).toBe('open');
  });

  it('opens at the tenth bad call in a row, however many were good before', async () => {
    await call(undefined, { count: 200 });
    await call(bad, { count: 9 });
    await call();
    for (let n = 0; n < 9; n += 1) {
      await call(bad);
      await call(new Failure('provider_rejected'));
    }
    expect(breaker.state).toBe('closed');
    await call(bad);
    expect(breaker.state).toBe('open');
  });

  it('goes by the times of the moment at which its first call fails', async () => {
    times = { timeoutMs: 1000, resetMs: 60_000 };
    await open();
    expect(breaker.nextProbeMs).toBeGreaterThan(30_000);
  });

  it('makes no call while it is open, then one to probe, and refuses others meanwhile', async () => {
    await open();
    const refused = breaker.run(callOf(), () => expect.unreachable());
    await expect(refused).rejects.toMatchObject({ code: 'provider_unavailable', retryable: true });
    await vi.advanceTimersByTimeAsync(resetMs);
    expect(breaker.reason).toBe('provider_error');
    // The probe fails.
    await call(new Failure('provider_timeout'));
    expect([breaker.state, breaker.reason]).toEqual(['open', 'provider_timeout']);
    await vi.advanceTimersByTimeAsync(resetMs);
    const probe = startCall();
    expect(await call()).toBe('provider_unavailable');
    expect(breaker.state).toBe('half-open');
    probe.resolve();
    expect(await probe.ended).toBe('done');
    // It has counted the probe by now: no second one slips through.
    expect([breaker.state, breaker.reason]).toEqual(['closed', undefined]);
    expect(changes).toEqual(['open', 'half-open', 'open', 'half-open', 'closed']);
    // opossum keeps the failures of before: they still fill the window, so the first bad call opens it again.
    await call(bad);
    expect(breaker.state).toBe('closed');
  });

  it('learns nothing from a probe that says nothing about the provider', async () => {
    await halfOpen();
    for (const code of ['provider_rate_limited', 'provider_rejected', 'timeout'] as const) {
      expect(await call(new Failure(code))).toBe(code);
      expect(breaker.state).toBe('half-open');
    }
    await call();
    expect(breaker.state).toBe('closed');
  });

  it('takes no old call that ends for the probe, nor counts it while it is open', async () => {
    const old = [startCall(), startCall(), startCall()];
    await open();
    old[0]?.resolve();
    await vi.advanceTimersByTimeAsync(0);
    expect(breaker.state).toBe('open');
    await vi.advanceTimersByTimeAsync(resetMs);
    old[1]?.resolve();
    old[2]?.reject(new Failure('provider_timeout'));
    await Promise.all(old.map(({ ended }) => ended));
    await vi.advanceTimersByTimeAsync(0);
    expect(breaker.state).toBe('half-open');
    const probe = startCall();
    expect(await call()).toBe('provider_unavailable');
    probe.resolve();
    expect(await probe.ended).toBe('done');
  });
});

describe('a call whose schema is compiled first', () => {
  it.each([new Failure('timeout'), new Failure('provider_timeout'), new Cancelled()])(
    'shows nothing by its silence, however it ends: %s',
    async (end) => {
      await call(undefined, { count: 5, afterMs: 100 });
      await call(end, { count: 30, afterMs: 20_000, isCompiling: true });
      expect(changes).toEqual([]);
      await call(new Failure('provider_error'), { count: 10, isCompiling: true });
      expect(changes).toEqual(['open']);
    },
  );

  it('knows that it is the probe, and leaves the next call to be one if it is silent', async () => {
    await halfOpen();
    const { calling, reject, ended } = startCall({ isCompiling: true });
    expect([calling.isProbe, breaker.isProbing]).toEqual([true, true]);
    reject(new Failure('provider_timeout'));
    await ended;
    expect([breaker.state, breaker.isProbing]).toEqual(['half-open', false]);
    expect(await call()).toBe('done');
    expect(breaker.state).toBe('closed');
  });

  it('counts as any other once its reply has begun', async () => {
    await call(undefined);
    const silent = { count: 30, afterMs: 20_000, isCompiling: true, hasBegun: true };
    await call(new Failure('provider_timeout'), silent);
    expect(changes[0]).toBe('open');
  });
});

describe('a call that its caller ends', () => {
  const deadline = new Failure('timeout');

  it.each([
    ['deadline', deadline],
    ['cancel', new Cancelled()],
    ['fallback', new Failure('provider_timeout', { cause: new CutForFallback() })],
  ])('counts after three times the usual time, ended by its %s', async (_, reason) => {
    await call(undefined, { afterMs: 1000 });
    await call(reason, { afterMs: 2900, count: 20 });
    expect(breaker.state).toBe('closed');
    await call(reason, { afterMs: 3100, count: 5 });
    expect(changes).toContain('open');
  });

  it('counts after a second at the earliest, however fast the provider usually is', async () => {
    await call(undefined, { afterMs: 10 });
    await call(deadline, { afterMs: 850, count: 20 });
    expect(breaker.state).toBe('closed');
    // A wait of one second is the shortest that a caller can ask for, and a little of it is spent on the way.
    await call(deadline, { afterMs: 950, count: 5 });
    expect(changes).toContain('open');
  });

  it.each(['provider_rejected', 'provider_rate_limited'] as const)(
    'counts with nine others in a row while no usual time is known, is no verdict as the probe, and %s ends the row',
    async (code) => {
      await call(deadline, { afterMs: 3000, count: 9 });
      await call(new Failure(code));
      await call(deadline, { afterMs: 3000, count: 9 });
      expect(breaker.state).toBe('closed');
      await call(deadline, { afterMs: 3000 });
      expect(breaker.state).toBe('open');
      await vi.advanceTimersByTimeAsync(resetMs);
      await call(deadline, { afterMs: 3000 });
      expect(breaker.state).toBe('half-open');
    },
  );

  it.each<[string, EndedCall, Error]>([
    ['once the reply has begun', { hasBegun: true }, deadline],
    ['when its lock was lost', {}, new LockLost()],
    ['when the worker stops', {}, new Failure('provider_unavailable')],
  ])('says nothing %s', async (_, own, reason) => {
    await call(undefined, { afterMs: 10 });
    await call(reason, { afterMs: 5000, count: 20, ...own });
    expect(breaker.state).toBe('closed');
  });
});

describe('the window', () => {
  it('is ten seconds for what fails fast, however good the minute before was', async () => {
    times = { timeoutMs: 45_000, resetMs: 1e9 };
    await call(undefined, { count: 600, afterMs: 100 });
    let asked = 0;
    // Two of three fail.
    for (; breaker.state === 'closed' && asked < 600; asked += 1)
      await call(asked % 3 === 0 ? undefined : bad, { afterMs: 100 });
    expect(asked).toBeLessThanOrEqual(120);
  });

  // A window that is shorter than a call, or than five of them at this pace, would never be full.
  it.each([
    [1, 45_000],
    [0.3, 45_000],
    [1, 1000],
    [0.3, 1000],
    [0.3, 10_000],
  ])(
    'opens at %d requests/s to a provider that hangs, with a time-out of %d ms',
    async (perSecond, timeoutMs) => {
      times = { timeoutMs, resetMs: 1e9 };
      const hang = () =>
        new Promise((_, reject) => setTimeout(reject, timeoutMs, new Failure('provider_timeout')));
      const pace = setInterval(
        () => void breaker.run(callOf(), hang).catch(() => undefined),
        1000 / perSecond,
      );
      const fifthSampleMs = 5 * (1000 / perSecond) + timeoutMs;
      await vi.advanceTimersByTimeAsync(fifthSampleMs + 1000);
      clearInterval(pace);
      expect(breaker.state).toBe('open');
    },
  );
});

describe('force', () => {
  it('holds it closed although calls fail, and counts anew afterwards', async () => {
    await open();
    breaker.force('closed');
    expect(await call(bad, { count: 20 })).toBe('provider_error');
    expect([breaker.state, breaker.nextProbeMs, breaker.reason]).toEqual(['closed', 0, undefined]);
    breaker.force(undefined);
    expect(breaker.state).toBe('closed');
    await open();
    expect(changes).toEqual(['open', 'closed', 'open']);
  });

  it('holds it open without a probe, and says who did', async () => {
    breaker.force('open');
    breaker.force('open');
    expect(await call()).toBe('provider_unavailable');
    expect([breaker.state, breaker.nextProbeMs, breaker.reason]).toEqual(['open', 0, 'operator']);
    breaker.force(undefined);
    expect(await call()).toBe('done');
    expect(changes).toEqual(['open', 'closed']);
  });
});
