import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { Failure, type FailureCode } from '../../../shared/failures.js';
import { Circuits } from '../../../workers/gate/circuits.js';
import { Cancelled, NotBegun } from '../../../workers/gate/ends.js';
import { type Slot, Slots } from '../../../workers/gate/slots.js';
import { callOf } from '../../support/calls.js';

let circuits: Circuits;
let slots: Slots;
let opened: Slot[];
let hasRoom: boolean;
/** The models that callers may name, with the default first. */
const namedModels = ['default', 'literal', 'pattern-*', ...Array.from({ length: 100 }, (_, n) => `m-${n}`)];

beforeEach(() => {
  hasRoom = true;
  opened = [];
  slots = new Slots({ size: () => 2, onChange: () => {} });
  circuits = new Circuits({
    times: () => ({ timeoutMs: 1000, resetMs: 100 }),
    concurrency: () => 2,
    hasRoom: () => hasRoom,
    namedModels: () => namedModels,
    onChange: () => {},
    publishLimit: () => {},
  });
});
afterEach(() => circuits.dispose());

/** A slot that any number of jobs can have. */
const unbounded: Slot = { take: async () => {}, park: () => {}, close: () => {}, isParked: false };
const parked = () => opened.filter(({ isParked }) => isParked).length;

interface JobOptions {
  model?: string;
  inMs?: number;
  addedAt?: number;
  isRetry?: boolean;
  stop?: AbortSignal;
  user?: string | undefined;
}

/** A job that calls the model and ends its call when the test says so. */
function start({ model = 'm', inMs = 60_000, addedAt = 0, isRetry = false, stop, user }: JobOptions = {}) {
  const slot = slots.open({ priority: 0, addedAt });
  opened.push(slot);
  const begun = Promise.withResolvers<void>();
  const call = Promise.withResolvers<string>();
  call.promise.catch(() => undefined);
  const caller = callOf({
    deadline: Date.now() + inMs,
    slot,
    isRetry,
    ...(user && { user }),
    ...(stop && { stop }),
  });
  const job = {
    isBegun: false,
    begun: begun.promise,
    answer: () => call.resolve('done'),
    cut: () => call.reject(new Cancelled()),
    fail: (code: FailureCode, retryAfterMs = 0) => call.reject(new Failure(code, { retryAfterMs })),
    ended: slot
      .take()
      .then(() =>
        circuits.of(model).run(caller, () => {
          job.isBegun = true;
          begun.resolve();
          return call.promise;
        }),
      )
      .catch((error) => error)
      .finally(() => slot.close()),
  };
  return job;
}

async function limit(model = 'm', retryAfterMs = 300, user?: string): Promise<void> {
  const job = start({ model, ...(user && { user }) });
  job.fail('provider_rate_limited', retryAfterMs);
  await job.ended;
}

async function open(model = 'm'): Promise<void> {
  for (let n = 0; n < 5; n += 1) {
    const job = start({ model, inMs: 50 });
    job.fail('provider_error');
    await job.ended;
  }
}

describe('a model that is limited', () => {
  it('keeps its jobs waiting without a slot, in their order, and no other model', async () => {
    await limit();
    const waiting = [1, 2, 3].map((addedAt) => start({ addedAt }));
    const others = [start({ model: 'other', addedAt: 9 }), start({ model: 'other', addedAt: 9 })];
    await Promise.all(others.map(({ begun }) => begun));
    expect(parked()).toBe(3);
    for (const other of others) other.answer();
    await waiting[0]?.begun;
    // One at a time until one has not been limited.
    expect(waiting.map(({ isBegun }) => isBegun)).toEqual([true, false, false]);
    for (const job of waiting) job.answer();
    expect(await Promise.all(waiting.map(({ ended }) => ended))).toEqual(['done', 'done', 'done']);
    expect(parked()).toBe(0);
  });

  it('is asked once after each cooldown while it limits every call', async () => {
    await limit('m', 0);
    const jobs = Array.from({ length: 5 }, (_, addedAt) => start({ addedAt }));
    await jobs[0]?.begun;
    jobs[0]?.fail('provider_rate_limited');
    await jobs[0]?.ended;
    expect(jobs.map(({ isBegun }) => isBegun)).toEqual([true, false, false, false, false]);
    await jobs[1]?.begun;
    expect(circuits.describe()).toEqual([]);
    jobs[1]?.answer();
    for (const job of jobs) job.answer();
    await Promise.all(jobs.map(({ ended }) => ended));
  });

  it('much time is left -> says after a minute all the same when to come again', async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const { cooldown } = circuits.of('m');
    cooldown.extend({ holdMs: 50_000 });
    const waiting = start({ inMs: 600_000 });
    await vi.advanceTimersByTimeAsync(40_000);
    cooldown.extend({ holdMs: 50_000 });
    await vi.advanceTimersByTimeAsync(20_000);
    const refusal = { code: 'provider_rate_limited', facts: { retryAfterMs: 30_000 } };
    expect(await waiting.ended).toMatchObject(refusal);
  });

  it('refuses at once a job whose deadline comes first, also one that waits already', async () => {
    await limit('m', 5000);
    expect(await start({ inMs: 4000 }).ended).toMatchObject({ code: 'provider_rate_limited' });
    const waiting = start({ inMs: 10_000 });
    circuits.of('m').cooldown.extend({ holdMs: 20_000 });
    expect(await waiting.ended).toMatchObject({ code: 'provider_rate_limited' });
    expect(circuits.describe()).toMatchObject([
      { model: 'm', state: 'limited', reason: 'provider_rate_limited' },
    ]);
  });

  it('refuses more jobs than there is room for, and ends a wait with the reason of the signal', async () => {
    await limit('m', 5000);
    const stop = new AbortController();
    const waiting = start({ stop: stop.signal });
    const reason = new Error('x');
    setImmediate(() => stop.abort(reason));
    expect(await waiting.ended).toBe(reason);
    expect(parked()).toBe(0);
    hasRoom = false;
    expect(await start().ended).toMatchObject({ code: 'provider_rate_limited' });
  });

  it('gives its jobs back when the pool stops, but no retry', async () => {
    await limit();
    const [first, retry] = [start(), start({ isRetry: true })];
    setImmediate(() => circuits.close());
    expect(await first.ended).toBeInstanceOf(NotBegun);
    expect(await start().ended).toBeInstanceOf(NotBegun);
    await retry.begun.catch(() => {});
    retry.answer();
    expect(await retry.ended).toBe('done');
  });
});

describe('a model that limits one user', () => {
  beforeEach(() => vi.useFakeTimers());
  afterEach(() => vi.useRealTimers());

  const limited = { model: 'm', state: 'limited', reason: 'provider_rate_limited' };
  const begun = (jobs: readonly { isBegun: boolean }[]) => jobs.map(({ isBegun }) => isBegun);

  it('after one pause a call of another user is made, and its answer lets all begin', async () => {
    await limit('m', 5000, 'M');
    expect(circuits.describe()).toMatchObject([
      { ...limited, nextProbeMs: 250 },
      { ...limited, nextProbeMs: 5000, user: 'M' },
    ]);
    const jobs = ['M', 'V', 'W'].map((user) => start({ user }));
    await vi.advanceTimersByTimeAsync(249);
    expect(begun(jobs)).toEqual([false, false, false]);
    await vi.advanceTimersByTimeAsync(1);
    expect(begun(jobs)).toEqual([false, true, false]);
    jobs[1]?.answer();
    await vi.advanceTimersByTimeAsync(0);
    expect(begun(jobs)).toEqual([true, true, true]);
    for (const job of jobs) job.answer();
    expect(await Promise.all(jobs.map(({ ended }) => ended))).toEqual(['done', 'done', 'done']);
    expect(circuits.describe()).toEqual([]);
  });

  it('more calls of this user are limited meanwhile -> the others do not begin one at a time again', async () => {
    const older = start({ user: 'M' });
    await limit('m', 5000, 'M');
    await vi.advanceTimersByTimeAsync(250);
    const first = start({ user: 'V' });
    await vi.advanceTimersByTimeAsync(1000);
    first.cut();
    await first.ended;
    older.fail('provider_rate_limited', 9000);
    await vi.advanceTimersByTimeAsync(0);
    const others = [start({ user: 'V' }), start({ user: 'W' })];
    await vi.advanceTimersByTimeAsync(0);
    expect(begun(others)).toEqual([true, true]);
    for (const job of others) job.cut();
  });

  it('no room is left to wait -> the jobs of others go back to the queue for a moment, and those of this user end', async () => {
    await limit('m', 5000, 'M');
    hasRoom = false;
    expect(await start({ user: 'V' }).ended).toEqual(new NotBegun(true));
    expect(await start({ user: 'M' }).ended).toMatchObject({ code: 'provider_rate_limited' });
  });

  it('another user is limited too -> all wait', async () => {
    await limit('m', 5000, 'M');
    await vi.advanceTimersByTimeAsync(250);
    await limit('m', 3000, 'V');
    expect(circuits.describe()).toMatchObject([
      { ...limited, nextProbeMs: 3000 },
      { ...limited, nextProbeMs: 4750, user: 'M' },
    ]);
    expect(await start({ user: 'W', inMs: 2999 }).ended).toMatchObject({ code: 'provider_rate_limited' });
  });

  it('while jobs of this user wait -> those of others are not behind them', async () => {
    await limit('m', 5000, 'M');
    const waiting = start({ user: 'M' });
    await vi.advanceTimersByTimeAsync(250);
    const other = start({ user: 'V' });
    await vi.advanceTimersByTimeAsync(0);
    expect(begun([waiting, other])).toEqual([false, true]);
    // Its call has not been limited within a second.
    await vi.advanceTimersByTimeAsync(1000);
    const later = start({ user: 'W' });
    other.cut();
    await vi.advanceTimersByTimeAsync(0);
    expect(begun([waiting, later])).toEqual([false, true]);
    later.answer();
    await vi.advanceTimersByTimeAsync(0);
    waiting.answer();
    expect(await waiting.ended).toBe('done');
  });
});

describe('a model whose breaker is open', () => {
  it('leaves the slots of calls that still hang to others', async () => {
    const hanging = [start(), start()];
    await Promise.all(hanging.map(({ begun }) => begun));
    const waiting = start({ model: 'other' });
    for (let n = 0; n < 10; n += 1) {
      const caller = callOf({ deadline: Date.now() + 1000, slot: unbounded });
      const failing = () => Promise.reject(new Failure('provider_error'));
      await circuits
        .of('m')
        .run(caller, failing)
        .catch(() => {});
      if (circuits.describe().length > 0) break;
    }
    await waiting.begun;
    for (const job of [...hanging, waiting]) job.answer();
    await Promise.all([...hanging, waiting].map(({ ended }) => ended));
    expect(parked()).toBe(0);
  });
});

describe('users who call a model', () => {
  const each = async (users: string[], code: FailureCode) => {
    for (const user of users) {
      const job = start({ user, inMs: 50 });
      job.fail(code);
      await job.ended;
    }
  };
  const begun = (jobs: { isBegun: boolean }[]) => jobs.map(({ isBegun }) => isBegun);
  const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);
  /** Refused jobs of these users, as one of them may probe. */
  const startProbing = async (...users: string[]) => {
    await each(['a', 'b', 'a', 'b', 'a', 'b'], 'provider_timeout');
    await pass(100);
    const jobs = users.map((user) => start({ user }));
    await pass(0);
    expect(begun(jobs)).toEqual(users.map((_, n) => n === 0));
    return jobs;
  };
  beforeEach(() => vi.useFakeTimers());
  afterEach(() => vi.useRealTimers());

  it('one is refused -> that user waits for a probe, and others and other models begin at once', async () => {
    await each(Array(5).fill('M'), 'provider_error');
    expect(circuits.describe()).toMatchObject([{ model: 'm', state: 'open', user: 'M', nextProbeMs: 100 }]);
    for (const own of [{ inMs: 50 }, { isRetry: true }])
      expect(await start({ user: 'M', ...own }).ended).toMatchObject({ code: 'provider_unavailable' });
    const waiting = [start({ user: 'M' }), start({ user: 'M' })];
    const others = [start({ user: 'V' }), start({ user: 'M', model: 'other' })];
    await pass(0);
    expect([...begun(waiting), ...begun(others)]).toEqual([false, false, true, true]);
    for (const job of others) job.answer();
    await pass(100);
    expect(begun(waiting)).toEqual([true, false]);
    waiting[0]?.fail('provider_error');
    expect(await waiting[1]?.ended).toMatchObject({ code: 'provider_unavailable' });
  });

  it('all are refused -> they probe in turn', async () => {
    const jobs = await startProbing('M', 'M', 'V', 'W');
    jobs[0]?.cut();
    await pass(0);
    expect(begun(jobs)).toEqual([true, false, true, false]);
    for (const job of jobs) job.answer();
    await pass(0);
    expect(begun(jobs)).toEqual([true, true, true, true]);
  });

  it('all are refused, and a probe has no end -> another user who waits probes after a second', async () => {
    const jobs = await startProbing('M', 'M', 'V');
    await pass(999);
    expect(begun(jobs)).toEqual([true, false, false]);
    await pass(1);
    expect(begun(jobs)).toEqual([true, false, true]);
    jobs[2]?.answer();
    await pass(0);
    expect(begun(jobs)).toEqual([true, true, true]);
  });

  it('all are refused, and the probe of one fails -> that user is refused, and another probes at once', async () => {
    const jobs = await startProbing('M', 'M', 'V');
    jobs[0]?.fail('provider_error');
    expect(await jobs[1]?.ended).toMatchObject({ code: 'provider_unavailable' });
    expect(begun(jobs)).toEqual([true, false, true]);
    jobs[2]?.answer();
    expect(await jobs[2]?.ended).toBe('done');
    expect(circuits.describe()).toMatchObject([{ user: 'M', state: 'open' }]);
  });
});

describe('of', () => {
  /** As many as there are circuits for models that callers name freely. */
  const limitOthers = () => {
    for (let n = 0; n < 31; n += 1) circuits.of(`limited-${n}`).cooldown.extend({ holdMs: 10_000 });
  };

  it('gives 32 models a circuit of their own, for which idle ones make room, and the others one together', async () => {
    for (let n = 0; n < 100; n += 1) circuits.of(`idle-${n}`);
    await open('failing');
    limitOthers();
    expect(circuits.of('one')).toBe(circuits.of('two'));
    expect(circuits.describe()).toHaveLength(32);
    // What they share forbids no call.
    await open('one');
    await limit('one', 5000);
    const job = start({ model: 'two', inMs: 50 });
    job.answer();
    expect(await job.ended).toBe('done');
    // The model by default and 64 literal names have one of their own, and keep it.
    const own = ['default', 'literal', 'm-62'].map((name) => circuits.of(name));
    expect(new Set([...own, circuits.of('m-63')]).size).toBe(4);
    expect(circuits.of('m-63')).toBe(circuits.of('one'));
    for (let n = 0; n < 100; n += 1) circuits.of(`idle-${n}`);
    expect(['default', 'literal', 'm-62'].map((name, n) => circuits.of(name) === own[n])).not.toContain(
      false,
    );
  });

  it('has one that was not called for ten resets make room, though its breaker is not closed', async () => {
    vi.useFakeTimers();
    for (let n = 0; n < 32; n += 1) await open(`failing-${n}`);
    expect(circuits.of('one')).toBe(circuits.of('two'));
    await vi.advanceTimersByTimeAsync(900);
    await open('failing-0');
    await vi.advanceTimersByTimeAsync(200);
    expect(circuits.of('one')).not.toBe(circuits.of('two'));
    expect(circuits.describe().map(({ model }) => model)).toContain('failing-0');
    vi.useRealTimers();
  });
});

describe('a slot', () => {
  it('goes to the most urgent, then to the oldest, at once when the size grows, and to fewer when it has shrunk', async () => {
    let size = 1;
    const few = new Slots({ size: () => size, onChange: () => {} });
    const holder = few.open({ priority: 0, addedAt: 0 });
    await holder.take();
    const granted: string[] = [];
    const wanted = [
      { name: 'late', priority: 1, addedAt: 9 },
      { name: 'asynchronous', priority: 7, addedAt: 1 },
      { name: 'early', priority: 1, addedAt: 5 },
    ];
    const waiting = wanted.map(({ name, ...urgency }) => {
      const slot = few.open(urgency);
      return { slot, taken: slot.take().then(() => granted.push(name)) };
    });
    const [late, asynchronous, early] = waiting;
    holder.park();
    await early?.taken;
    size = 2;
    few.grantFree();
    await late?.taken;
    size = 1;
    late?.slot.close();
    await new Promise((resolve) => setImmediate(resolve));
    expect(granted).toEqual(['early', 'late']);
    early?.slot.close();
    await asynchronous?.taken;
    expect(granted).toEqual(['early', 'late', 'asynchronous']);
    expect(holder.isParked).toBe(true);
    holder.close();
    expect(holder.isParked).toBe(false);
  });
});

it('an operator holds breakers closed -> those of models that come later, too', async () => {
  await open('old');
  circuits.force('closed');
  await open('old');
  await open('new');
  expect(circuits.describe()).toEqual([]);
  circuits.force(undefined);
  await open('new');
  expect(circuits.describe()).toMatchObject([{ model: 'new', state: 'open' }]);
});
