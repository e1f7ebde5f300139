import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Failure } from '../../../shared/failures.js';
import { Breaker, type BreakerState, type BreakerTimes } from '../../../workers/job/breaker.js';
import { CallSamples, CutForFallback } from '../../../workers/job/call-samples.js';
import { Cancelled, LockLost } from '../../../workers/job/running-job.js';
import { UserBreaker } from '../../../workers/job/user-breaker.js';
import { callOf } from '../../support/calls.js';

function openBreaker(times: () => BreakerTimes, onChange: (state: BreakerState) => void = () => {}): Breaker {
  const samples = new CallSamples(new UserBreaker({ resetMs: () => 20, onChange: () => {} }));
  return new Breaker({ times, samples, onChange });
}

/** A call whose reply has not begun. */
const plain = callOf();
let breaker: Breaker;
/** A busy machine may find it half-open already. */
let changes: BreakerState[];
let waiting: { state: BreakerState; resolve: () => void }[];

beforeEach(() => {
  changes = [];
  waiting = [];
  const times = { timeoutMs: 1000, resetMs: 20 };
  breaker = openBreaker(
    () => times,
    (state) => {
      changes.push(state);
      for (const waiter of waiting) if (waiter.state === state) waiter.resolve();
    },
  );
});
afterEach(() => breaker.dispose());

/** Resolves at the next change to this state. */
function becomes(state: BreakerState): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  waiting.push({ state, resolve });
  return promise;
}

/** How a call through the breaker ends: `done`, or the code it failed with. */
async function call(outcome?: Failure | Promise<unknown>): Promise<string> {
  try {
    await breaker.run(plain, async () => {
      if (outcome instanceof Failure) throw outcome;
      await outcome;
    });
    return 'done';
  } catch (error) {
    return error instanceof Failure ? error.code : String(error);
  }
}

/** A call that ends when the test says so. */
function startCall() {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  return { ended: call(promise), resolve, reject };
}

const fail = () => call(new Failure('provider_error'));

/** Counting takes a few turns of the event loop after a call. */
const counted = () => new Promise((resolve) => setImmediate(resolve));

async function open(): Promise<void> {
  const opened = becomes('open');
  for (let n = 0; n < 5; n += 1) await fail();
  await opened;
}

async function halfOpen(): Promise<void> {
  const halfOpened = becomes('half-open');
  await open();
  await halfOpened;
}

describe('Breaker', () => {
  it.each(['provider_error', 'provider_timeout'] as const)(
    'opens at the fifth %s and not before, and throws what the call does',
    async (code) => {
      const bad = new Failure(code);
      for (let n = 0; n < 4; n += 1) expect(await call(bad)).toBe(code);
      await counted();
      expect(breaker.state).toBe('closed');
      await expect(breaker.run(plain, () => Promise.reject(bad))).rejects.toBe(bad);
      await counted();
      expect(changes[0]).toBe('open');
    },
  );

  it('has the reason of the last bad call, until it closes', async () => {
    for (let n = 0; n < 4; n += 1) await fail();
    expect(breaker.reason).toBeUndefined();
    const [opened, halfOpened] = [becomes('open'), becomes('half-open')];
    await call(new Failure('provider_timeout'));
    await opened;
    await call(new Failure('provider_rejected'));
    expect(breaker.reason).toBe('provider_timeout');
    await halfOpened;
    expect(breaker.reason).toBe('provider_timeout');
    const closed = becomes('closed');
    await call();
    await closed;
    expect(breaker.reason).toBeUndefined();
  });

  it('stays closed while at least half of the calls are good', async () => {
    for (let n = 0; n < 20; n += 1) {
      await call();
      await fail();
    }
    await counted();
    expect(breaker.state).toBe('closed');
  });

  it.each<[string, Failure]>([
    ['a refusal', new Failure('provider_rejected')],
    ['a rate limit', new Failure('provider_rate_limited')],
    ['blocked content', new Failure('content_blocked')],
    ['a deadline', new Failure('timeout')],
    ['a fault of this service', new Failure('internal')],
    ['an unusable answer', new Failure('provider_error', { retryable: false })],
    ['a shutdown', new Failure('provider_unavailable')],
  ])('does not hold %s against the provider', async (_, failure) => {
    for (let n = 0; n < 4; n += 1) await fail();
    for (let n = 0; n < 50; n += 1) await call(failure);
    await counted();
    expect(breaker.state).toBe('closed');
    await fail();
    await counted();
    expect(changes[0]).toBe('open');
  });

  it('opens at the tenth bad call in a row, however many were good before', async () => {
    for (let n = 0; n < 200; n += 1) await call();
    for (let n = 0; n < 9; n += 1) await fail();
    await call();
    for (let n = 0; n < 9; n += 1) {
      await fail();
      await call(new Failure('provider_rejected'));
    }
    await counted();
    expect(breaker.state).toBe('closed');
    await fail();
    expect(changes[0]).toBe('open');
  });

  it('goes by the times of the moment at which its first call fails', async () => {
    let resetMs = 20;
    const other = openBreaker(() => ({ timeoutMs: 1000, resetMs }));
    resetMs = 60_000;
    for (let n = 0; n < 10; n += 1)
      await other.run(plain, () => Promise.reject(new Failure('provider_error'))).catch(() => undefined);
    expect(other.nextProbeMs).toBeGreaterThan(30_000);
    other.dispose();
  });

  it('makes no call while it is open, then one to probe, and refuses others meanwhile', async () => {
    const halfOpened = becomes('half-open');
    await open();
    const refused = breaker.run(plain, () => expect.unreachable());
    await expect(refused).rejects.toMatchObject({ code: 'provider_unavailable', retryable: true });
    await halfOpened;
    const probe = startCall();
    expect(await call()).toBe('provider_unavailable');
    expect(breaker.state).toBe('half-open');
    probe.resolve();
    expect(await probe.ended).toBe('done');
    // It has counted the probe by now: no second one slips through.
    expect(breaker.state).toBe('closed');
    expect(await call()).toBe('done');
    expect(changes).toEqual(['open', 'half-open', 'closed']);
    // opossum keeps the failures of before: they still fill the window, so the first bad call opens it again.
    await fail();
    await counted();
    expect(breaker.state).toBe('closed');
  });

  it('opens again when the probe fails, and probes again', async () => {
    await halfOpen();
    const opened = becomes('open');
    const halfOpened = becomes('half-open');
    await fail();
    await opened;
    expect(await call()).toBe('provider_unavailable');
    await halfOpened;
    const closed = becomes('closed');
    expect(await call()).toBe('done');
    await closed;
  });

  it('learns nothing from a probe that says nothing about the provider', async () => {
    await halfOpen();
    for (const code of ['provider_rate_limited', 'provider_rejected', 'timeout'] as const) {
      expect(await call(new Failure(code))).toBe(code);
      await counted();
      expect(breaker.state).toBe('half-open');
    }
    const closed = becomes('closed');
    await call();
    await closed;
  });

  it.each([
    ['well', (late: ReturnType<typeof startCall>) => late.resolve()],
    ['badly', (late: ReturnType<typeof startCall>) => late.reject(new Failure('provider_timeout'))],
  ])('does not take an old call that ends %s for the probe', async (_, end) => {
    const late = startCall();
    await halfOpen();
    end(late);
    await late.ended;
    await counted();
    expect(breaker.state).toBe('half-open');
    const probe = startCall();
    expect(await call()).toBe('provider_unavailable');
    probe.resolve();
    await probe.ended;
  });

  it('ignores old calls that end while it is open', async () => {
    const late = startCall();
    await open();
    late.resolve();
    await late.ended;
    await counted();
    expect(changes).not.toContain('closed');
  });
});

describe('a call that its caller ends', () => {
  beforeEach(() => vi.useFakeTimers());
  afterEach(() => vi.useRealTimers());

  interface CutCall {
    afterMs: number;
    count: number;
    reason?: Error;
    /** Whether the provider has begun its reply by then. */
    isReplying?: boolean;
  }
  /** Calls one after another, each cut after this long. */
  async function cut({ afterMs, count, reason = new Failure('timeout'), isReplying = false }: CutCall) {
    for (let n = 0; n < count; n += 1) {
      const ended = breaker
        .run(callOf({ hasBegun: isReplying }), () => {
          return new Promise((_, reject) => setTimeout(() => reject(reason), afterMs));
        })
        .catch(() => undefined);
      await vi.advanceTimersByTimeAsync(afterMs);
      await ended;
    }
    await vi.advanceTimersByTimeAsync(0);
  }
  async function answerAfter(ms: number) {
    const answered = breaker.run(plain, () => new Promise<void>((resolve) => setTimeout(resolve, ms)));
    await vi.advanceTimersByTimeAsync(ms);
    await answered;
  }

  it.each([
    ['deadline', new Failure('timeout')],
    ['cancel', new Cancelled()],
    ['fallback', new Failure('provider_timeout', { cause: new CutForFallback() })],
  ])('counts after three times the usual time, ended by its %s', async (_, reason) => {
    await answerAfter(1000);
    await cut({ afterMs: 2900, count: 20, reason });
    expect(breaker.state).toBe('closed');
    await cut({ afterMs: 3100, count: 5, reason });
    expect(changes).toContain('open');
  });

  it('counts after a second at the earliest, however fast the provider usually is', async () => {
    await answerAfter(10);
    await cut({ afterMs: 850, count: 20 });
    expect(breaker.state).toBe('closed');
    // A wait of one second is the shortest that a caller can ask for, and a little of it is spent on the way.
    await cut({ afterMs: 950, count: 5 });
    expect(changes).toContain('open');
  });

  it('counts with nine others in a row while no usual time is known, and is no verdict as the probe', async () => {
    await cut({ afterMs: 3000, count: 9 });
    expect(breaker.state).toBe('closed');
    await cut({ afterMs: 3000, count: 1 });
    expect(breaker.state).toBe('open');
    await vi.advanceTimersByTimeAsync(20);
    await cut({ afterMs: 3000, count: 1 });
    expect(breaker.state).toBe('half-open');
  });

  it.each(['provider_rejected', 'provider_rate_limited'] as const)(
    'counts from zero again when the provider answers %s',
    async (code) => {
      for (let n = 0; n < 4; n += 1) {
        await cut({ afterMs: 3000, count: 9 });
        await call(new Failure(code));
      }
      expect(breaker.state).toBe('closed');
    },
  );

  it.each<[string, Partial<CutCall>]>([
    ['once the reply has begun', { isReplying: true }],
    ['when its lock was lost', { reason: new LockLost() }],
    ['when the worker stops', { reason: new Failure('provider_unavailable') }],
  ])('says nothing %s', async (_, own) => {
    await answerAfter(10);
    await cut({ afterMs: 5000, count: 20, ...own });
    expect(breaker.state).toBe('closed');
  });
});

describe('the window', () => {
  beforeEach(() => vi.useFakeTimers());
  afterEach(() => vi.useRealTimers());

  it('is ten seconds for what fails fast, however good the minute before was', async () => {
    const flaky = openBreaker(() => ({ timeoutMs: 45_000, resetMs: 1e9 }));
    const ask = async (isWell: boolean) => {
      const end = async () => {
        if (!isWell) throw new Failure('provider_error');
      };
      await flaky.run(plain, end).catch(() => undefined);
      await vi.advanceTimersByTimeAsync(100);
    };
    for (let n = 0; n < 600; n += 1) await ask(true);
    let asked = 0;
    // Two of three fail.
    for (; flaky.state === 'closed' && asked < 600; asked += 1) await ask(asked % 3 === 0);
    flaky.dispose();
    expect(asked).toBeLessThanOrEqual(120);
  });

  /** Calls at this pace that all hang until they time out; when it opened, in milliseconds, if within five minutes. */
  async function opensAfter(perSecond: number, timeoutMs: number): Promise<number> {
    const startedAt = Date.now();
    let openedAt = Number.NaN;
    const times = { timeoutMs, resetMs: 1e9 };
    const hung = openBreaker(
      () => times,
      () => {
        openedAt = Date.now();
      },
    );
    const hang = () =>
      new Promise((_, reject) => setTimeout(() => reject(new Failure('provider_timeout')), timeoutMs));
    const pace = setInterval(() => void hung.run(plain, hang).catch(() => undefined), 1000 / perSecond);
    for (let second = 0; second < 300 && Number.isNaN(openedAt); second += 1)
      await vi.advanceTimersByTimeAsync(1000);
    clearInterval(pace);
    hung.dispose();
    return openedAt - startedAt;
  }

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
      const fifthSampleMs = 5 * (1000 / perSecond) + timeoutMs;
      expect(await opensAfter(perSecond, timeoutMs)).toBeLessThanOrEqual(fifthSampleMs + 1000);
    },
  );
});

describe('force', () => {
  it('holds it closed although calls fail, and counts anew afterwards', async () => {
    await open();
    breaker.force('closed');
    for (let n = 0; n < 20; n += 1) expect(await fail()).toBe('provider_error');
    await counted();
    expect([breaker.state, breaker.nextProbeMs, breaker.reason]).toEqual(['closed', 0, undefined]);
    breaker.force(undefined);
    expect(breaker.state).toBe('closed');
    await open();
    expect(changes.filter((state) => state !== 'half-open')).toEqual(['open', 'closed', 'open']);
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
