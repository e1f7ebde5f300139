import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Failure, type FailureCode } from '../../../shared/failures.js';
import { Breaker, type BreakerState, type BreakerTimes } from '../../../workers/gate/breaker.js';
import { CallSamples } from '../../../workers/gate/call-samples.js';
import { Cancelled, CutForFallback, LockLost } from '../../../workers/gate/ends.js';
import { UserBreaker } from '../../../workers/gate/user-breaker.js';
import { unusableAnswer } from '../../../workers/providers/error-classification.js';
import { admittedCall } from '../../support/calls.js';

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
function startCall({
  isCompiling = false,
  hasBegun = false,
}: Pick<EndedCall, 'hasBegun' | 'isCompiling'> = {}) {
  const calling = admittedCall({ isCompiling, progress: { hasBegun } });
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

const timedOut = new Failure('provider_timeout');
/** How calls end, beside the codes of failures. */
const ends: Record<string, Error | undefined> = {
  good: undefined,
  cancel: new Cancelled(),
  'lost lock': new LockLost(),
  'cut for the fallback': new Failure('provider_timeout', { cause: new CutForFallback() }),
  'error for good': new Failure('provider_error', { retryable: false }),
  'no JSON': unusableAnswer('malformed_json'),
  'unknown tool': unusableAnswer('unknown_tool'),
  'malformed arguments': unusableAnswer('malformed_arguments'),
};

/** Makes calls one after another: '20 timeout after 2900' are twenty that end so, each after 2.9 s. */
async function make(calls: string): Promise<void> {
  const [, count, end = '', afterMs = 0, more = ''] =
    /^(\d+) (.+?)(?: after (\d+))?(, while compiling)?(, begun)?$/.exec(calls) ?? [];
  const error = end in ends ? ends[end] : new Failure(end as FailureCode);
  const own = { isCompiling: more !== '', hasBegun: calls.endsWith(', begun') };
  await call(error, { count: Number(count), afterMs: Number(afterMs), ...own });
}

describe('calls that leave it closed, and those behind them that open it', () => {
  const mixed = (times: number, ...calls: string[]) => Array<string[]>(times).fill(calls).flat();
  const nothing = [
    ...['provider_rejected', 'provider_rate_limited', 'content_blocked', 'timeout', 'internal'],
    ...['provider_unavailable', 'error for good', 'no JSON', 'unknown tool', 'malformed arguments'],
  ];
  it.each<[before: string[], last?: string]>([
    [['4 provider_error'], '1 provider_error'],
    [['4 provider_timeout'], '1 provider_timeout'],
    [mixed(20, '1 good', '1 provider_error')],
    // However many were good before, the tenth in a row is enough, and a refusal does not end the row.
    [
      [...['200 good', '9 provider_error', '1 good'], ...mixed(9, '1 provider_error', '1 provider_rejected')],
      '1 provider_error',
    ],
    // These are neither held against the provider, nor for it.
    ...nothing.map((end): [string[], string] => [['4 provider_error', `50 ${end}`], '1 provider_error']),
    // The first use of a schema may be silent for long; errors and a reply that has begun count as any other.
    ...['timeout', 'provider_timeout', 'cancel'].map((end): [string[], string] => [
      ['5 good after 100', `30 ${end} after 20000, while compiling`],
      '10 provider_error, while compiling',
    ]),
    [['1 good'], '30 provider_timeout after 20000, while compiling, begun'],
    // An end by the caller counts after three times the usual time.
    ...['timeout', 'cancel', 'cut for the fallback'].map((end): [string[], string] => [
      ['1 good after 1000', `20 ${end} after 2900`],
      `5 ${end} after 3100`,
    ]),
    // A wait of one second is the shortest that a caller can ask for, and a little of it is spent on the way.
    [['1 good after 10', '20 timeout after 850'], '5 timeout after 950'],
    // While no usual time is known, ten in a row are needed.
    ...['provider_rejected', 'provider_rate_limited'].map((end): [string[], string] => [
      ['9 timeout after 3000', `1 ${end}`, '9 timeout after 3000'],
      '1 timeout after 3000',
    ]),
    ...['20 timeout after 5000, begun', '20 lost lock after 5000', '20 provider_unavailable after 5000'].map(
      (calls): [string[]] => [['1 good after 10', calls]],
    ),
  ])('%j -> %s', async (before, last) => {
    for (const calls of before) await make(calls);
    expect(changes).toEqual([]);
    if (last === undefined) return;
    await make(last);
    expect(changes[0]).toBe('open');
  });
});

describe('Breaker', () => {
  it('a call -> ends as it does, and the reason of the breaker is the code of the last bad one', async () => {
    expect(await call(bad, { count: 4 })).toBe('provider_error');
    expect(breaker.reason).toBeUndefined();
    await expect(breaker.run(admittedCall(), () => Promise.reject(timedOut))).rejects.toBe(timedOut);
    await vi.advanceTimersByTimeAsync(0);
    expect([breaker.state, breaker.reason]).toEqual(['open', 'provider_timeout']);
  });

  it('times that change -> it goes by those of the moment at which its first call fails', async () => {
    times = { timeoutMs: 1000, resetMs: 60_000 };
    await open();
    expect(breaker.nextProbeMs).toBeGreaterThan(30_000);
  });

  it('an open breaker -> no call, then one to probe, and none meanwhile, until a probe is good', async () => {
    await open();
    const refused = breaker.run(admittedCall(), () => expect.unreachable());
    await expect(refused).rejects.toMatchObject({ code: 'provider_unavailable', retryable: true });
    await vi.advanceTimersByTimeAsync(resetMs);
    expect(breaker.reason).toBe('provider_error');
    // The probe fails.
    await call(timedOut);
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

  it('a probe that says nothing about the provider -> another one', async () => {
    await halfOpen();
    for (const code of ['provider_rate_limited', 'provider_rejected', 'timeout'] as const) {
      expect(await call(new Failure(code), { afterMs: 3000 })).toBe(code);
      expect(breaker.state).toBe('half-open');
    }
    await call();
    expect(breaker.state).toBe('closed');
  });

  it('a probe whose schema is compiled first, and that is silent -> knows that it is one, and leaves it to the next', async () => {
    await halfOpen();
    const { calling, reject, ended } = startCall({ isCompiling: true });
    expect([calling.isProbe, breaker.isProbing]).toEqual([true, true]);
    reject(timedOut);
    await ended;
    expect([breaker.state, breaker.isProbing]).toEqual(['half-open', false]);
    expect(await call()).toBe('done');
    expect(breaker.state).toBe('closed');
  });

  it('old calls that end late -> are not taken for the probe, nor counted while it is open', async () => {
    const old = [startCall(), startCall(), startCall()];
    await open();
    old[0]?.resolve();
    await vi.advanceTimersByTimeAsync(0);
    expect(breaker.state).toBe('open');
    await vi.advanceTimersByTimeAsync(resetMs);
    old[1]?.resolve();
    old[2]?.reject(timedOut);
    await Promise.all(old.map(({ ended }) => ended));
    await vi.advanceTimersByTimeAsync(0);
    expect(breaker.state).toBe('half-open');
    const probe = startCall();
    expect(await call()).toBe('provider_unavailable');
    probe.resolve();
    expect(await probe.ended).toBe('done');
  });
});

describe('the window', () => {
  it('two of three calls that fail fast -> opens within ten seconds, however good the minute before was', async () => {
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
    '%d requests/s to a provider that hangs, with a time-out of %d ms -> opens',
    async (perSecond, timeoutMs) => {
      times = { timeoutMs, resetMs: 1e9 };
      const hang = () =>
        new Promise((_, reject) => setTimeout(reject, timeoutMs, new Failure('provider_timeout')));
      const pace = setInterval(
        () => void breaker.run(admittedCall(), hang).catch(() => undefined),
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
  it('closed -> stays so although calls fail, and counts anew afterwards', async () => {
    await open();
    breaker.force('closed');
    expect(await call(bad, { count: 20 })).toBe('provider_error');
    expect([breaker.state, breaker.nextProbeMs, breaker.reason]).toEqual(['closed', 0, undefined]);
    breaker.force(undefined);
    expect(breaker.state).toBe('closed');
    await open();
    expect(changes).toEqual(['open', 'closed', 'open']);
  });

  it('open -> stays so without a probe, and says who did it', async () => {
    breaker.force('open');
    breaker.force('open');
    expect(await call()).toBe('provider_unavailable');
    expect([breaker.state, breaker.nextProbeMs, breaker.reason]).toEqual(['open', 0, 'operator']);
    breaker.force(undefined);
    expect(await call()).toBe('done');
    expect(changes).toEqual(['open', 'closed']);
  });
});
