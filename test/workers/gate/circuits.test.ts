import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
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
  it('refuses at once a job whose deadline comes before the probe, and no other model', async () => {
    await open();
    expect(await start({ inMs: 50 }).ended).toMatchObject({ code: 'provider_unavailable' });
    expect(await start({ isRetry: true }).ended).toMatchObject({ code: 'provider_unavailable' });
    expect(circuits.describe()).toMatchObject([{ model: 'm', state: 'open', reason: 'provider_error' }]);
    const other = start({ model: 'other' });
    other.answer();
    expect(await other.ended).toBe('done');
  });

  it('probes with the first that waits, and then lets all begin or refuses them', async () => {
    await open();
    const refused = [start(), start()];
    await refused[0]?.begun;
    refused[0]?.fail('provider_error');
    expect(await refused[1]?.ended).toMatchObject({ code: 'provider_unavailable' });
    expect(await refused[0]?.ended).toMatchObject({ code: 'provider_error' });
    const jobs = [start(), start()];
    await jobs[0]?.begun;
    expect(jobs.map(({ isBegun }) => isBegun)).toEqual([true, false]);
    for (const job of jobs) job.answer();
    expect(await Promise.all(jobs.map(({ ended }) => ended))).toEqual(['done', 'done']);
    expect(circuits.describe()).toEqual([]);
  });

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
  const each = async (
    user: string | undefined,
    count: number,
    code: 'provider_error' | 'provider_timeout',
  ) => {
    for (let n = 0; n < count; n += 1) {
      const job = start({ user, inMs: 50 });
      job.fail(code);
      await job.ended;
    }
  };
  const begun = (jobs: { isBegun: boolean }[]) => jobs.map(({ isBegun }) => isBegun);
  const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);
  beforeEach(() => vi.useFakeTimers());
  afterEach(() => vi.useRealTimers());

  it('one is refused -> that user waits for a probe, without a slot, and others begin at once', async () => {
    await each('M', 5, 'provider_error');
    expect(circuits.describe()).toMatchObject([{ model: 'm', state: 'open', user: 'M', nextProbeMs: 100 }]);
    for (const own of [{ inMs: 50 }, { isRetry: true }])
      expect(await start({ user: 'M', ...own }).ended).toMatchObject({ code: 'provider_unavailable' });
    const waiting = [start({ user: 'M' }), start({ user: 'M' })];
    const others = [start({ user: 'V' }), start({ user: 'W' })];
    await pass(0);
    expect([begun(waiting), begun(others)]).toEqual([
      [false, false],
      [true, true],
    ]);
    for (const job of others) job.answer();
    await pass(100);
    expect(begun(waiting)).toEqual([true, false]);
    waiting[0]?.fail('provider_error');
    expect(await waiting[1]?.ended).toMatchObject({ code: 'provider_unavailable' });
  });

  it('all are refused -> they probe in turn, and one whose probe fails leaves the next to others', async () => {
    for (let n = 0; n < 6; n += 1) await each(`user-${n % 3}`, 1, 'provider_timeout');
    await pass(100);
    const jobs = ['M', 'M', 'V', 'W'].map((user) => start({ user }));
    const [first, second, third, last] = jobs;
    await pass(0);
    expect(begun(jobs)).toEqual([true, false, false, false]);
    first?.cut();
    await pass(0);
    expect(begun(jobs)).toEqual([true, false, true, false]);
    third?.answer();
    await pass(0);
    expect(begun(jobs)).toEqual([true, true, true, true]);
    for (const job of [second, last]) job?.answer();
  });

  it("the probe of one fails -> that user waits, and the next probe is another user's at once", async () => {
    for (let n = 0; n < 6; n += 1) await each(`user-${n % 3}`, 1, 'provider_timeout');
    await pass(100);
    const jobs = ['M', 'M', 'V'].map((user) => start({ user }));
    await pass(0);
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
    expect(circuits.of('failing').breakers.all.state).not.toBe('closed');
  });

  it('gives the model by default and 64 literal names one and keeps it', async () => {
    await open('failing');
    limitOthers();
    const own = circuits.of('default');
    expect(circuits.of('literal')).not.toBe(circuits.of('other'));
    expect(circuits.of('m-62')).not.toBe(circuits.of('other'));
    expect(circuits.of('m-63')).toBe(circuits.of('other'));
    for (let n = 0; n < 100; n += 1) circuits.of(`idle-${n}`);
    expect(circuits.of('default')).toBe(own);
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

  it('forbids no call of what the others share', async () => {
    await open('failing');
    limitOthers();
    await open('one');
    await limit('one', 5000);
    const job = start({ model: 'two', inMs: 50 });
    job.answer();
    expect(await job.ended).toBe('done');
  });
});

describe('a schema that its provider compiles', () => {
  it('is new until a call with it was answered', async () => {
    /** Whether the call that ends so counted as one that waits until its schema is compiled. */
    const isCompiling = async (schema: string, error?: Failure) => {
      let seen: boolean | undefined;
      const made = circuits.of('m').run(callOf({ schema, slot: unbounded }), async (admitted) => {
        seen = admitted.isCompiling;
        if (error) throw error;
      });
      await made.catch(() => undefined);
      return seen;
    };
    const rejected = new Failure('provider_rejected');
    const asked = [await isCompiling('a', rejected), await isCompiling('a'), await isCompiling('a')];
    expect([...asked, await isCompiling('b')]).toEqual([true, true, false, true]);
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

describe('force', () => {
  it('holds the breakers of all models closed, also of those that come later', async () => {
    await open('old');
    circuits.force('closed');
    await open('old');
    await open('new');
    expect(circuits.describe()).toEqual([]);
    circuits.force(undefined);
    await open('new');
    expect(circuits.describe()).toMatchObject([{ model: 'new', state: 'open' }]);
  });
});
