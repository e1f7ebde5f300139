import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Failure } from '../../../shared/failures.js';
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
  user?: string;
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
    fail: (code: 'provider_error' | 'provider_rate_limited', retryAfterMs = 0) =>
      call.reject(new Failure(code, { retryAfterMs })),
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

async function limit(model = 'm', retryAfterMs = 300): Promise<void> {
  const job = start({ model });
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
    circuits.of('m').cooldown.extend(20_000);
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
    expect(circuits.worstState).toBe('closed');
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
      if (circuits.worstState === 'open') break;
    }
    await waiting.begun;
    for (const job of [...hanging, waiting]) job.answer();
    await Promise.all([...hanging, waiting].map(({ ended }) => ended));
    expect(parked()).toBe(0);
  });
});

describe("users' calls without an answer in time", () => {
  beforeEach(() => vi.useFakeTimers());
  afterEach(() => vi.useRealTimers());

  const timeout = new Failure('provider_timeout');
  /** Calls at the same time, each of which ends so after this long. */
  async function end(user: string, count: number, reason: Error = timeout, afterMs = 1000): Promise<void> {
    const calls = Array.from({ length: count }, () => {
      const caller = callOf({ deadline: Date.now() + 60_000, user, slot: unbounded });
      const cut = () => new Promise((_, fail) => setTimeout(() => fail(reason), afterMs));
      return circuits
        .of('m')
        .run(caller, cut)
        .catch(() => {});
    });
    await vi.advanceTimersByTimeAsync(afterMs);
    await Promise.all(calls);
  }
  const answer = async (user: string) => {
    const job = start({ user, inMs: 1000 });
    await vi.advanceTimersByTimeAsync(10);
    job.answer();
    await vi.advanceTimersByTimeAsync(0);
    return job.ended;
  };

  /** Steps: '10 of M cut' are ten at once; 'M is refused' and 'M is answered' say how one ends; '100 ms' is a pause. */
  async function make(step: string): Promise<void> {
    const [, count, user = '', how] =
      /^(?:(\d+) of )?(\S+) (cut|timed out|is refused|is answered)$/.exec(step) ?? [];
    if (how === undefined) await vi.advanceTimersByTimeAsync(Number.parseInt(step, 10));
    else if (count) await end(user, Number(count), how === 'cut' ? new Cancelled() : timeout);
    else if (how === 'is answered') expect(await answer(user)).toBe('done');
    else
      for (const last of [{ inMs: 50 }, { isRetry: true }])
        expect(await start({ user, ...last }).ended).toMatchObject({ code: 'provider_unavailable' });
  }
  it.each([
    '10 of M cut, M is refused -> open for M: timeout',
    '5 of M timed out, M is refused -> open for M: timeout',
    '10 of M cut, V is answered, M is answered -> closed',
    // The probe shows nothing when it is cut.
    '10 of M cut, 100 ms, 1 of M cut -> half-open for M: timeout',
    '10 of M cut, 100 ms, 1 of M timed out -> open for M: timeout',
    `${'1 of M timed out, V is answered, '.repeat(9)}M is answered -> closed`,
    '9 of M timed out, 5 of V timed out -> open for all: provider_timeout',
    `${'1 of A timed out, 1 of B timed out, '.repeat(3)}V is refused -> open for all: provider_timeout`,
    '1 of V timed out, 9 of M timed out, 1 of V timed out, V is answered -> closed',
  ])('%s', async (row) => {
    const [steps = '', end] = row.split(' -> ');
    for (const step of steps.split(', ')) await make(step);
    const [open] = circuits.describe();
    expect(open ? `${open.state} for ${open.user ?? 'all'}: ${open.reason}` : 'closed').toBe(end);
    if (end === 'open for M: timeout') expect(open).toMatchObject({ model: 'm', nextProbeMs: 100 });
  });

  it('one that began later was answered -> nobody is refused', async () => {
    const long = ['a', 'b', 'c', 'd', 'e', 'f'].map((user) => end(user, 1, timeout, 5000));
    await vi.advanceTimersByTimeAsync(0);
    await answer('V');
    await vi.advanceTimersByTimeAsync(5000);
    await Promise.all(long);
    expect(circuits.describe()).toEqual([]);
  });

  it('others begin at once while the user waits for the probe -> there is room for them', async () => {
    await end('M', 10, new Cancelled());
    const probes = [start({ user: 'M' }), start({ user: 'M' })];
    await vi.advanceTimersByTimeAsync(100);
    expect(probes.map(({ isBegun }) => isBegun)).toEqual([true, false]);
    const others = [start({ user: 'V' }), start({ user: 'W' })];
    await vi.advanceTimersByTimeAsync(0);
    for (const job of [...others, ...probes]) job.answer();
    expect(await Promise.all(others.map(({ ended }) => ended))).toEqual(['done', 'done']);
  });

  it('those of several users -> these probe in turn', async () => {
    for (let n = 0; n < 6; n += 1) await end(`user-${n % 3}`, 1);
    await vi.advanceTimersByTimeAsync(100);
    const ends = [start({ user: 'M', inMs: 1000 }), start({ user: 'M' }), start({ user: 'V' })];
    const [first, second, other] = ends;
    await vi.advanceTimersByTimeAsync(0);
    expect(ends.map(({ isBegun }) => isBegun)).toEqual([true, false, false]);
    first?.cut();
    await first?.ended;
    await vi.advanceTimersByTimeAsync(0);
    expect(ends.map(({ isBegun }) => isBegun)).toEqual([true, false, true]);
    other?.answer();
    await vi.advanceTimersByTimeAsync(0);
    second?.answer();
    expect(await second?.ended).toBe('done');
  });

  it('operators hold the breaker closed -> they count for nothing', async () => {
    circuits.force('closed');
    await end('M', 20, new Cancelled());
    expect(await answer('M')).toBe('done');
  });
});

describe('of', () => {
  /** As many as there are circuits for models that callers name freely. */
  const limitOthers = () => {
    for (let n = 0; n < 31; n += 1) circuits.of(`limited-${n}`).cooldown.extend(10_000);
  };

  it('gives 32 models a circuit of their own, for which idle ones make room, and the others one together', async () => {
    for (let n = 0; n < 100; n += 1) circuits.of(`idle-${n}`);
    await open('failing');
    limitOthers();
    expect(circuits.of('one')).toBe(circuits.of('two'));
    expect(circuits.describe()).toHaveLength(32);
    expect(circuits.of('failing').breaker.state).not.toBe('closed');
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
    expect(circuits.worstState).toBe('closed');
    await open('old');
    await open('new');
    expect(circuits.worstState).toBe('closed');
    circuits.force(undefined);
    await open('new');
    expect(circuits.worstState).toBe('open');
  });
});
