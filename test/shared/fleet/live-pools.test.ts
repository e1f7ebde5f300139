import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { LiveChats } from '../../../api/chat/live-chats.js';
import { UserShares } from '../../../api/chat/user-shares.js';
import type { Failure } from '../../../shared/failures.js';
import { Heartbeats } from '../../../shared/fleet/heartbeats.js';
import { type JobOwner, LivePools } from '../../../shared/fleet/live-pools.js';
import type { PoolHeartbeat } from '../../../shared/protocol/messages.js';
import type { ProviderSettings } from '../../../shared/protocol/settings.js';
import { attach } from '../../support/attached.js';
import { heartbeatOf } from '../../support/heartbeats.js';

const startMs = 1_000_000;
const me = { provider: 'openai', user: 'me', isAsync: false } as const;
let nowMs: number;
let pools: LivePools;
let heartbeats: Heartbeats;
let shares: UserShares;
let chats: LiveChats;

beforeEach(() => {
  nowMs = startMs;
  heartbeats = new Heartbeats({ now: () => nowMs });
  pools = new LivePools(heartbeats);
  shares = new UserShares();
  chats = new LiveChats();
  chats.listen(shares);
});
afterEach(() => {
  for (const { id } of chats.all()) chats.onOutcome(id, ended);
});

const ended = { kind: 'cancelled', queueMs: 0, providerMs: 0 } as const;
/** A chat of this process that is outstanding until it is released. */
function addJob(owner: JobOwner): { release: () => void } {
  const { user, provider, isAsync: isLowPriority } = owner;
  const id = randomUUID();
  attach(chats, id, { command: { user, provider, isLowPriority }, level: shares.nextLevel(owner) });
  return { release: () => chats.onOutcome(id, ended) };
}

const admit = (owner: JobOwner, required: Omit<Parameters<LivePools['admit']>[1], 'own' | 'level'>): void =>
  pools.admit(owner, { ...required, own: shares.of(owner.provider), level: shares.nextLevel(owner) });
const heartbeat = (changes: Partial<PoolHeartbeat> = {}) =>
  heartbeats.add(heartbeatOf({ meanJobMs: 1000, defaultModel: 'm', ...changes }));

const noDefaultModel = { defaultModel: undefined };
/** Of a pool that makes no call of the model for so long. */
const limited = (nextProbeMs: number) => ({
  breakers: [{ model: 'm', state: 'limited' as const, nextProbeMs }],
});

/** `admitted`, or why not. */
function verdict({ timeoutMs = 10_000, model = 'm', isAsync = false, isStream = false, user = 'me' } = {}) {
  return refusal({ timeoutMs, model, isAsync, isStream, user })?.code ?? 'admitted';
}
type Question = Parameters<typeof verdict>[0];

/** Why the request is refused, and when to come again. */
function refusal(question: Question): Failure | undefined {
  const { user = 'me', isAsync = false, timeoutMs = 10_000, model = 'm', isStream = false } = question ?? {};
  try {
    admit({ ...me, user, isAsync }, { timeoutMs, model: model || undefined, isStream });
    return undefined;
  } catch (error) {
    return error as Failure;
  }
}

const [ok, gone, invalid] = ['admitted', 'provider_unavailable', 'invalid_request'];
/** Expects that a request which can wait so long is admitted, and one that cannot is refused. */
function expectWait(ms: number, question?: Question, code = 'overloaded'): void {
  expect(verdict({ ...question, timeoutMs: ms })).toBe('admitted');
  if (ms > 0) expect(verdict({ ...question, timeoutMs: ms - 1 })).toBe(code);
}

/** Past the time in which a live worker must have been heard of. */
const afterGrace = () => {
  nowMs += 60_000;
};
const full = (waiting: number) => ({ inFlight: 10, waiting });

describe('Heartbeats', () => {
  it('has the last heartbeat of each live worker, and forgets those that are silent or have stopped', () => {
    expect(heartbeats.of('openai')).toBeUndefined();
    heartbeat({ inFlight: 1 });
    heartbeat({ inFlight: 2 });
    heartbeat({ worker: 'two', state: 'paused' });
    expect(heartbeats.of('openai')).toMatchObject([
      { worker: 'one', inFlight: 2 },
      { worker: 'two', state: 'paused' },
    ]);
    expect(pools.totalConcurrency()).toBe(20);
    heartbeat({ worker: 'three', provider: 'bedrock', concurrency: 5 });
    expect(pools.totalConcurrency()).toBe(25);
    afterGrace();
    expect(pools.totalConcurrency()).toBeUndefined();
    heartbeat({ worker: 'two' });
    expect(heartbeats.of('openai')).toMatchObject([{ worker: 'two' }]);
    heartbeat({ worker: 'two', state: 'stopped' });
    expect(heartbeats.of('openai')).toEqual([]);
  });

  it('forgets workers ten minutes after their last heartbeat, although nothing has been asked since', () => {
    heartbeat({ worker: 'gone' });
    nowMs = startMs + 600_001;
    heartbeat({ worker: 'gone, too', state: 'stopped' });
    // Nothing else shows what is remembered: to a clock that goes back its heartbeat would be new.
    nowMs = startMs + 3500;
    expect(verdict()).toBe('provider_unavailable');
  });
});

describe('admit', () => {
  const [first, second] = ['projects/p/endpoints/1', 'projects/p/endpoints/2'];
  const open = { model: 'm', state: 'open', nextProbeMs: 2000 } as const;
  /** The fields of a worker's heartbeat. */
  const states: Record<string, Partial<PoolHeartbeat>> = {
    ...{ paused: { state: 'paused' }, probing: { state: 'probing' }, stopped: { state: 'stopped' } },
    ...{ full: { inFlight: 10 }, 'full, for x': { inFlight: 10, models: ['x'], defaultModel: 'x' } },
    ...{
      'without a default': noDefaultModel,
      'for first and gpt-*': { defaultModel: first, models: ['gpt-*'] },
    },
    ...{ 'for all': { models: ['*'] }, failing: { breakers: [open] } },
    ...{
      'refusing me': { breakers: [{ ...open, user: 'me' }] },
      'refusing V, and me everywhere': {
        breakers: [
          { ...open, user: 'V' },
          { ...open, model: null, user: 'me' },
        ],
      },
      'failing, for x': { breakers: [open], models: ['x'], defaultModel: 'd' },
    },
  };
  const ends: Record<string, string> = { ok, gone, invalid, overloaded: 'overloaded' };

  /** Steps: 'two paused' is a worker's heartbeat, '3 s' passes, 'gone for x by V' answers V's request for x. */
  function take(step: string): void {
    const [, worker, how = ''] = /^(one|two)(?: (.+))?$/.exec(step) ?? [];
    const [, end = '', model = 'm', user = 'me'] = /^(\w+)(?: for (\S*))?(?: by (\S+))?$/.exec(step) ?? [];
    if (worker) heartbeat({ worker, ...states[how] });
    else if (step === 'bedrock') heartbeat({ provider: 'bedrock' });
    else if (step === 'outage') heartbeats.recordOutage();
    else if (step.endsWith(' places')) expect(`${pools.totalConcurrency()} places`).toBe(step);
    else if (step.endsWith(' s')) nowMs += 1000 * Number.parseInt(step, 10);
    else expect(verdict({ model: model.replace(/^none$/, ''), user }), step).toBe(ends[end]);
  }

  it.each([
    // The benefit of the doubt, until live workers must have been heard of.
    'ok; 3 s; ok; 1 s; gone',
    'one; one stopped; ok; 3 s; ok; 1 s; gone',
    'one; 60 s; gone; outage; ok; 3 s; ok; 1 s; gone',
    'one paused; gone; one probing; ok',
    // Two heartbeats may be missed.
    '60 s; bedrock; gone; one; ok; 3 s; ok; 1 s; gone',
    // One that was full is taken for late until it counts as gone, if it would call the model.
    '60 s; one full, for x; 4 s; gone; one full; 4 s; overloaded; 10 places; 4 s; gone; undefined places',
    'one without a default; invalid for none; ok; two; ok for none; two paused; invalid for none',
    `one for first and gpt-*; ok for gpt-5; ok for ${first}; invalid for ${second}; two for all; ok for ${second}`,
    `one for first and gpt-*; two without a default; invalid for ${second}; ok for plain`,
    // A breaker that is open at every pool, until the next probe.
    'one failing; gone; gone for none; ok for x; two; ok; two failing; gone; 2 s; ok',
    'one refusing me; gone; gone for none; ok by V; 2 s; ok',
    // Each entry refuses its own user, and that of the account every model.
    'one refusing V, and me everywhere; gone; gone for x; gone by V; ok for x by V; ok by W; 2 s; ok; ok by V',
    // A failing model that callers may not use is not named.
    'one failing, for x; invalid',
  ])('%s', (steps) => {
    for (const step of steps.split('; ')) take(step);
  });

  it.each(['m', ''])(
    'a failing model, asked for as %j -> is named with the time of the next try',
    (model) => {
      heartbeat({ breakers: [{ model: 'm', state: 'open', nextProbeMs: 7100 }], defaultModel: 'm' });
      const detail = 'openai/m is failing; the next try is in 8 s.';
      expect(refusal({ model })?.facts).toMatchObject({ detail, retryAfterMs: 7100 });
    },
  );

  it('a model that is limited beyond the deadline -> is refused, and no other', () => {
    heartbeat(limited(3000));
    expectWait(3000, { model: 'm' }, 'provider_rate_limited');
    expect(verdict({ model: 'other', timeoutMs: 2000 })).toBe(ok);
  });
});

describe('the predicted wait', () => {
  const slow = { inFlight: 10, meanJobMs: 80_000 };
  const mixed = { ...full(9), waitingAsync: 90 };
  const byLevel = [1, 1, 2, 4, 8, 16, 32, 64, 128, 244];
  it.each<[string, number, Partial<PoolHeartbeat>[], Question?]>([
    ['is none while there is room, however long the jobs take', 0, [{ inFlight: 9, meanJobMs: 1_000_000 }]],
    ['is backlog and job over the concurrency at the mean pace, and a tenth more', 12_100, [full(99)]],
    ['counts the backlog that workers share once', 6600, [full(99), { worker: 'two', ...full(99) }]],
    ['leaves paused workers out', 12_100, [full(99), { worker: 'two', state: 'paused', concurrency: 1000 }]],
    [
      'goes by the oldest job while none has ended',
      12_100,
      [{ ...full(99), meanJobMs: 0, oldestJobMs: 1000 }],
    ],
    ['is that of the whole answer', 176_000, [{ ...slow, waiting: 9 }]],
    ['has a stream only begin in time', 88_000, [{ ...slow, waiting: 9 }], { isStream: true }],
    ['of a stream is one job of the full pool at least', 8800, [slow], { isStream: true }],
    ['leaves asynchronous jobs out for who waits', 2200, [mixed]],
    ['counts all jobs for an asynchronous one', 12_100, [mixed], { isAsync: true }],
    [
      // 9.1 jobs a second: a plain mean would make it 1.8.
      'weighs the pace of a pool by how much it does at once',
      13_297,
      [
        { concurrency: 9, inFlight: 9, waiting: 99 },
        { worker: 'slow', concurrency: 1, inFlight: 1, waiting: 99, meanJobMs: 10_000 },
      ],
    ],
    [
      'is not halved by a worker that has just started',
      11_200,
      [full(100), { worker: 'two', concurrency: 1, inFlight: 1, waiting: 100, meanJobMs: 0 }],
    ],
  ])('%s: %i ms', (_, ms, pool, question) => {
    for (const each of pool) heartbeat(each);
    expectWait(ms, question);
  });

  it('counts our own jobs at once, and each until it has settled', () => {
    heartbeat();
    const settled = Array.from({ length: 109 }, () => addJob(me));
    for (let n = 0; n < 500; n += 1) addJob({ ...me, provider: 'bedrock' });
    expectWait(12_100);
    for (const { release } of settled) release();
    expectWait(0);
  });

  it('counts our own asynchronous jobs for who waits as far as they may be running', () => {
    heartbeat();
    for (let n = 0; n < 104; n += 1) addJob({ ...me, isAsync: true });
    for (let n = 0; n < 5; n += 1) addJob(me);
    expectWait(1210);
    expectWait(12_100, { isAsync: true });
  });

  it.each([
    [false, { waiting: 500, waitingByLevel: byLevel }, 500],
    [true, { waitingAsync: 200, waitingAsyncByLevel: [1, 1, 2, 4, 8, 16, 32, 64, 72] }, 200],
  ])(
    'leaves out what is taken later, as its user has more outstanding (async: %s)',
    (isAsync, pool, count) => {
      heartbeat({ inFlight: 10, ...pool });
      for (let n = 0; n < count; n += 1) addJob({ ...me, isAsync });
      expect(verdict({ timeoutMs: 20_000, isAsync })).toBe('overloaded');
      expectWait(1320, { isAsync, user: 'another' });
    },
  );
});

describe('a pool that is held back', () => {
  const held = { ...limited(5000), ...full(99) };
  const free = { worker: 'two' };
  it.each<[string, number, Partial<PoolHeartbeat>[], number, object]>([
    [
      'is waited for by those who have the time',
      5000,
      [limited(5000)],
      4999,
      { code: 'provider_rate_limited', retryable: true, facts: { retryAfterMs: 5000 } },
    ],
    [
      'has its backlog to work off as well',
      17_100,
      [held],
      16_100,
      { code: 'provider_rate_limited', facts: { retryAfterMs: 5000 } },
    ],
    [
      'is overloaded when the backlog alone would be too long',
      17_100,
      [held],
      11_100,
      { code: 'overloaded', retryable: true, facts: { retryAfterMs: 6000 } },
    ],
    [
      'keeps no jobs from another one that is not, which is overloaded by itself',
      6600,
      [limited(60_000), { ...free, ...full(49) }],
      5600,
      { code: 'overloaded', facts: { retryAfterMs: 1000 } },
    ],
  ])('%s: %i ms', (_, ms, pool, shortMs, failure) => {
    for (const each of pool) heartbeat(each);
    expect(verdict({ timeoutMs: ms })).toBe('admitted');
    expect(refusal({ timeoutMs: shortMs })).toMatchObject(failure);
  });

  it('is held the shorter the older its heartbeat is, and not at all when it says so', () => {
    heartbeat(limited(5000));
    nowMs += 2000;
    expectWait(3000, {}, 'provider_rate_limited');
    heartbeat();
    expectWait(0);
    heartbeat(limited(1000));
    nowMs += 2000;
    expectWait(0);
  });

  it('is held for each user as long as the longest entry that concerns this user says', () => {
    heartbeat({
      breakers: [{ model: 'm', state: 'limited', nextProbeMs: 30_000, user: 'me' }, ...limited(250).breakers],
    });
    expectWait(30_000, {}, 'provider_rate_limited');
    expectWait(250, { user: 'V' }, 'provider_rate_limited');
    expect(verdict({ model: 'x', timeoutMs: 1 })).toBe(ok);
  });

  it('counts for its room once it is let go', () => {
    heartbeat({ ...limited(2000), concurrency: 90, waiting: 99 });
    heartbeat({ worker: 'two', ...limited(1000), concurrency: 1, waiting: 99 });
    expect(verdict({ timeoutMs: 4000 })).toBe('admitted');
    heartbeat({ state: 'paused', ...limited(2000), concurrency: 90, waiting: 99 });
    expect(verdict({ timeoutMs: 4000 })).toBe('overloaded');
  });
});

describe('what operators have set', () => {
  const set = (overrides: ProviderSettings['overrides'], version = 1) =>
    pools.settings.apply({ provider: 'openai', version, overrides, changedAt: '', changedBy: 'ann' });

  beforeEach(() => {
    afterGrace();
  });

  it('has a draining provider take nothing new, not as a fallback either, until the drain is over', () => {
    const target = { provider: 'openai' } as const;
    heartbeat();
    set({ intake: 'draining' });
    expect([verdict(), pools.isServed(target), pools.isAbandoned(target)]).toEqual([gone, false, false]);
    set({ intake: 'paused' }, 1);
    expect(verdict()).toBe(gone);
    set({}, 2);
    expect(verdict()).toBe(ok);
  });

  it('admits to pools that are paused what they would do in time if they went on now', () => {
    set({ intake: 'paused' });
    heartbeat({ state: 'paused', pausedBy: 'operator', waiting: 19 });
    expectWait(2200);
    // Chats that wait there and have a fallback are passed on.
    expect(pools.isAbandoned({ provider: 'openai' })).toBe(true);
    heartbeat({ state: 'paused', pausedBy: 'clock' });
    expect(verdict()).toBe('provider_unavailable');
    expect(pools.isAbandoned({ provider: 'openai' })).toBe(true);
  });

  it('admits what can begin after a window of the rate that is used up', () => {
    set({ rate: { max: 10, durationMs: 60_000 } });
    heartbeat({ rateLeftMs: 30_000, concurrency: 20, meanJobMs: 100 });
    expect(verdict({ timeoutMs: 30_000 })).toBe('overloaded');
    expect(verdict({ timeoutMs: 34_000 })).toBe('admitted');
    heartbeat({ rateLeftMs: 30_000, concurrency: 20, meanJobMs: 100, waiting: 10 });
    expect(verdict({ timeoutMs: 90_000 })).toBe('overloaded');
    expect(verdict({ timeoutMs: 100_000 })).toBe('admitted');
  });

  it('has no more jobs at once than all pools together may have', () => {
    heartbeat({ inFlight: 5, waiting: 4 });
    expectWait(0);
    set({ globalConcurrency: 5 });
    expectWait(2200);
    expect(pools.totalConcurrency()).toBe(5);
    set({ globalConcurrency: 50 }, 2);
    expectWait(0);
    expect(pools.totalConcurrency()).toBe(10);
  });

  it('has jobs begin no faster than the rate, although there is room', () => {
    heartbeat({ waiting: 6 });
    set({ rate: { max: 3, durationMs: 10_000 } });
    // 20 s until it begins, and a second until it is done.
    expectWait(23_100);
    expect(verdict({ timeoutMs: 22_000, isStream: true })).toBe('admitted');
    heartbeat();
    expectWait(0);
    for (let n = 0; n < 6; n += 1) addJob(me);
    expect(verdict({ timeoutMs: 20_000 })).toBe('overloaded');
  });
});
