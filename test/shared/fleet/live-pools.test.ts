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

const noDefaultModel = { hasDefaultModel: false, defaultModel: undefined };
/** Of a pool that makes no call of the model for so long. */
const limited = (nextProbeMs: number) => ({
  breakers: [{ model: 'm', state: 'limited' as const, nextProbeMs }],
});

/** Why the request is refused, and when to come again. */
function refusal(timeoutMs: number): object {
  try {
    admit(me, { timeoutMs, model: 'm' });
    return {};
  } catch (error) {
    const { code, retryable, facts } = error as Failure;
    return { code, retryable, retryAfterMs: facts.retryAfterMs };
  }
}

/** `admitted`, or why not. */
function verdict({
  timeoutMs = 10_000,
  model = 'm',
  isAsync = false,
  isStream = false,
  user = 'me',
} = {}): string {
  try {
    admit({ ...me, user, isAsync }, { timeoutMs, model: model || undefined, isStream });
    return 'admitted';
  } catch (error) {
    return (error as Failure).code;
  }
}

/** Past the time in which a live worker must have been heard of. */
const afterGrace = () => {
  nowMs += 60_000;
};

describe('heartbeatsOf', () => {
  it('has the last heartbeat of each live worker, and forgets those that are silent or have stopped', () => {
    heartbeat({ inFlight: 1 });
    heartbeat({ inFlight: 2 });
    heartbeat({ worker: 'two', state: 'paused' });
    expect(heartbeats.of('openai')).toMatchObject([
      { worker: 'one', inFlight: 2 },
      { worker: 'two', state: 'paused' },
    ]);
    afterGrace();
    heartbeat({ worker: 'two' });
    expect(heartbeats.of('openai')).toMatchObject([{ worker: 'two' }]);
    heartbeat({ worker: 'two', state: 'stopped' });
    expect(heartbeats.of('openai')).toEqual([]);
  });

  it('knows nothing until every live worker must have been heard of', () => {
    expect(heartbeats.of('openai')).toBeUndefined();
    afterGrace();
    expect(heartbeats.of('openai')).toEqual([]);
  });
});

describe('admit', () => {
  it('gives an unknown pool the benefit of the doubt until every live worker must have been heard of', () => {
    expect(verdict()).toBe('admitted');
    nowMs = startMs + 3000;
    expect(verdict()).toBe('admitted');
    nowMs = startMs + 5000;
    expect(verdict()).toBe('provider_unavailable');
  });

  it('has a stream only begin in time', () => {
    afterGrace();
    heartbeat({ inFlight: 10, waiting: 9, meanJobMs: 80_000 });
    expect(verdict({ timeoutMs: 100_000 })).toBe('overloaded');
    expect(verdict({ timeoutMs: 88_000, isStream: true })).toBe('admitted');
    expect(verdict({ timeoutMs: 87_999, isStream: true })).toBe('overloaded');
    heartbeat({ inFlight: 10, waiting: 0, meanJobMs: 80_000 });
    expect(verdict({ timeoutMs: 8800, isStream: true })).toBe('admitted');
  });

  it('gives it as well when all that was heard of is workers that have stopped', () => {
    heartbeat();
    heartbeat({ state: 'stopped' });
    expect(verdict()).toBe('admitted');
    nowMs = startMs + 5000;
    expect(verdict()).toBe('provider_unavailable');
  });

  it('gives it again after an outage of the store, in which nobody could be heard', () => {
    heartbeat();
    afterGrace();
    expect(verdict()).toBe('provider_unavailable');
    heartbeats.recordOutage();
    nowMs += 3000;
    expect(verdict()).toBe('admitted');
    nowMs += 1000;
    expect(verdict()).toBe('provider_unavailable');
  });

  it('counts a worker that missed two heartbeats, and not one that has fallen silent', () => {
    afterGrace();
    heartbeat();
    nowMs += 3000;
    expect(verdict()).toBe('admitted');
    nowMs += 1000;
    expect(verdict()).toBe('provider_unavailable');
    heartbeat();
    expect(verdict()).toBe('admitted');
  });

  it('takes a full worker that falls silent for late, until it counts as gone', () => {
    afterGrace();
    heartbeat({ inFlight: 10 });
    expect(pools.totalConcurrency()).toBe(10);
    nowMs += 4000;
    expect(verdict()).toBe('overloaded');
    expect(pools.totalConcurrency()).toBe(10);
    nowMs += 4000;
    expect(verdict()).toBe('provider_unavailable');
    expect(pools.totalConcurrency()).toBeUndefined();
  });

  it('takes none for late that would not call the model (finding N17)', () => {
    afterGrace();
    heartbeat({ inFlight: 10, models: ['another'], defaultModel: 'another' });
    nowMs += 4000;
    expect(verdict()).toBe('provider_unavailable');
  });

  it('goes by the newest heartbeat of each worker', () => {
    afterGrace();
    heartbeat({ state: 'paused' });
    heartbeat({ worker: 'two' });
    expect(verdict()).toBe('admitted');
    heartbeat({ worker: 'two', state: 'paused' });
    expect(verdict()).toBe('provider_unavailable');
    heartbeat();
    expect(verdict()).toBe('admitted');
  });

  it('refuses at once when every worker is paused, even among those just heard of', () => {
    heartbeat({ state: 'paused' });
    expect(verdict()).toBe('provider_unavailable');
  });

  it('lets a probing pool have a job', () => {
    heartbeat({ state: 'probing' });
    expect(verdict()).toBe('admitted');
  });

  it('forgets a worker that stopped', () => {
    afterGrace();
    heartbeat();
    heartbeat({ worker: 'two', state: 'paused' });
    heartbeat({ state: 'stopped' });
    expect(verdict()).toBe('provider_unavailable');
  });

  it('does not take the workers of one provider for those of another', () => {
    afterGrace();
    heartbeat({ provider: 'bedrock' });
    expect(verdict()).toBe('provider_unavailable');
  });

  it('demands a model where no pool has one', () => {
    heartbeat(noDefaultModel);
    expect(verdict({ model: '' })).toBe('invalid_request');
    expect(verdict()).toBe('admitted');
    heartbeat({ worker: 'two' });
    expect(verdict({ model: '' })).toBe('admitted');
    heartbeat({ worker: 'two', state: 'paused' });
    expect(verdict({ model: '' })).toBe('invalid_request');
  });

  it('refuses a model that no pool may be asked for', () => {
    heartbeat({ defaultModel: 'projects/p/endpoints/1', models: ['gpt-*'] });
    expect(verdict({ model: 'gpt-5' })).toBe('admitted');
    expect(verdict({ model: 'projects/p/endpoints/1' })).toBe('admitted');
    expect(verdict({ model: 'projects/p/endpoints/2' })).toBe('invalid_request');
    heartbeat({ worker: 'two', models: ['*'] });
    expect(verdict({ model: 'projects/p/endpoints/2' })).toBe('admitted');
    heartbeat({ worker: 'two', ...noDefaultModel });
    expect(verdict({ model: 'projects/p/endpoints/2' })).toBe('invalid_request');
    expect(verdict({ model: 'plain' })).toBe('admitted');
  });

  it('refuses a model whose breaker is open at every pool, and no other', () => {
    const breakers = [{ model: 'm', state: 'open' as const, nextProbeMs: 2000 }];
    heartbeat({ breakers, defaultModel: 'm' });
    expect(verdict({ model: 'm' })).toBe('provider_unavailable');
    expect(verdict({ model: '' })).toBe('provider_unavailable');
    expect(verdict({ model: 'other' })).toBe('admitted');
    heartbeat({ worker: 'two' });
    expect(verdict({ model: 'm' })).toBe('admitted');
    heartbeat({ worker: 'two', breakers });
    expect(verdict({ model: 'm' })).toBe('provider_unavailable');
    nowMs += 2000;
    expect(verdict({ model: 'm' })).toBe('admitted');
  });

  it('refuses the one user whom alone a breaker refuses, and nobody else', () => {
    heartbeat({
      breakers: [{ model: 'm', state: 'open', nextProbeMs: 2000, user: 'me' }],
      defaultModel: 'm',
    });
    expect(verdict({ user: 'me' })).toBe('provider_unavailable');
    expect(verdict({ user: 'me', model: '' })).toBe('provider_unavailable');
    expect(verdict({ user: 'other' })).toBe('admitted');
    nowMs += 2000;
    expect(verdict({ user: 'me' })).toBe('admitted');
  });

  it.each(['m', undefined])('says which model is failing, and when it is tried next (%s)', (model) => {
    const breakers = [{ model: 'm', state: 'open' as const, nextProbeMs: 7100 }];
    heartbeat({ breakers, defaultModel: 'm' });
    expect(() => admit(me, { timeoutMs: 1000, model })).toThrow(
      expect.objectContaining({
        facts: expect.objectContaining({
          detail: 'openai/m is failing; the next try is in 8 s.',
          retryAfterMs: 7100,
        }),
      }),
    );
  });

  it('names no model that callers may not use', () => {
    heartbeat({
      breakers: [{ model: 'm', state: 'open', nextProbeMs: 2000 }],
      models: ['other'],
      defaultModel: 'd',
    });
    expect(verdict({ model: 'm' })).toBe('invalid_request');
  });

  it('refuses a model that is limited beyond the deadline, and no other', () => {
    heartbeat(limited(3000));
    expect(verdict({ model: 'm', timeoutMs: 2000 })).toBe('provider_rate_limited');
    expect(verdict({ model: 'm', timeoutMs: 4000 })).toBe('admitted');
    expect(verdict({ model: 'other', timeoutMs: 2000 })).toBe('admitted');
  });
});

describe('the predicted wait', () => {
  it('is none while there is room, however long the jobs take', () => {
    heartbeat({ inFlight: 9, meanJobMs: 1_000_000 });
    expect(verdict({ timeoutMs: 0 })).toBe('admitted');
  });

  it('is the backlog, and the job itself, over the concurrency at the mean pace, and a tenth more', () => {
    heartbeat({ inFlight: 10, waiting: 99, meanJobMs: 1000 });
    expect(verdict({ timeoutMs: 12_100 })).toBe('admitted');
    expect(verdict({ timeoutMs: 12_099 })).toBe('overloaded');
  });

  it('says how much too long it is', () => {
    heartbeat({ inFlight: 10, waiting: 99, meanJobMs: 1000 });
    expect(() => admit(me, { timeoutMs: 9100, model: 'm' })).toThrow(
      expect.objectContaining({ code: 'overloaded', facts: { provider: 'openai', retryAfterMs: 3000 } }),
    );
  });

  it('shrinks with every worker, and counts the shared backlog once', () => {
    heartbeat({ inFlight: 10, waiting: 99 });
    heartbeat({ worker: 'two', inFlight: 10, waiting: 99 });
    expect(verdict({ timeoutMs: 6600 })).toBe('admitted');
    expect(verdict({ timeoutMs: 6599 })).toBe('overloaded');
  });

  it('leaves paused workers out', () => {
    heartbeat({ inFlight: 10, waiting: 99 });
    heartbeat({ worker: 'two', state: 'paused', concurrency: 1000 });
    expect(verdict({ timeoutMs: 9999 })).toBe('overloaded');
  });

  it('counts our own jobs at once, and each until it has settled', () => {
    heartbeat();
    const settled = Array.from({ length: 109 }, () => addJob(me));
    for (let n = 0; n < 500; n += 1) addJob({ ...me, provider: 'bedrock' });
    expect(verdict({ timeoutMs: 12_100 })).toBe('admitted');
    expect(verdict({ timeoutMs: 12_099 })).toBe('overloaded');
    for (const { release } of settled) release();
    expect(verdict({ timeoutMs: 0 })).toBe('admitted');
  });

  it('leaves asynchronous jobs out for who waits, and counts all for an asynchronous one', () => {
    heartbeat({ inFlight: 10, waiting: 9, waitingAsync: 90 });
    expect(verdict({ timeoutMs: 2200 })).toBe('admitted');
    expect(verdict({ timeoutMs: 2199 })).toBe('overloaded');
    expect(verdict({ timeoutMs: 12_100, isAsync: true })).toBe('admitted');
    expect(verdict({ timeoutMs: 12_099, isAsync: true })).toBe('overloaded');
  });

  it('counts our own asynchronous jobs for who waits as far as they may be running', () => {
    heartbeat();
    const settled = Array.from({ length: 104 }, () => addJob({ ...me, isAsync: true }));
    for (let n = 0; n < 5; n += 1) settled.push(addJob(me));
    expect(verdict({ timeoutMs: 1210 })).toBe('admitted');
    expect(verdict({ timeoutMs: 1209 })).toBe('overloaded');
    expect(verdict({ timeoutMs: 12_100, isAsync: true })).toBe('admitted');
    expect(verdict({ timeoutMs: 12_099, isAsync: true })).toBe('overloaded');
    for (const { release } of settled) release();
    expect(verdict({ timeoutMs: 0, isAsync: true })).toBe('admitted');
  });

  it('leaves out what is taken after the newcomer, because its user has more outstanding', () => {
    heartbeat({ inFlight: 10, waiting: 500, waitingByLevel: [1, 1, 2, 4, 8, 16, 32, 64, 128, 244] });
    for (let n = 0; n < 500; n += 1) addJob(me);
    expect(verdict({ timeoutMs: 30_000 })).toBe('overloaded');
    expect(verdict({ timeoutMs: 1320, user: 'another' })).toBe('admitted');
    expect(verdict({ timeoutMs: 1319, user: 'another' })).toBe('overloaded');
  });

  it('leaves out asynchronous jobs of those who have more for one who has none', () => {
    const waitingAsyncByLevel = [1, 1, 2, 4, 8, 16, 32, 64, 72];
    heartbeat({ inFlight: 10, waitingAsync: 200, waitingAsyncByLevel });
    for (let n = 0; n < 200; n += 1) addJob({ ...me, isAsync: true });
    expect(verdict({ timeoutMs: 20_000, isAsync: true })).toBe('overloaded');
    expect(verdict({ timeoutMs: 1320, isAsync: true, user: 'another' })).toBe('admitted');
  });

  it('goes by the age of the oldest job while none has ended', () => {
    heartbeat({ inFlight: 10, waiting: 99, meanJobMs: 0, oldestJobMs: 1000 });
    expect(verdict({ timeoutMs: 12_100 })).toBe('admitted');
    expect(verdict({ timeoutMs: 12_099 })).toBe('overloaded');
  });

  it('weighs the pace of a pool by how much it does at once', () => {
    heartbeat({ concurrency: 9, inFlight: 9, waiting: 99, meanJobMs: 1000 });
    heartbeat({ worker: 'slow', concurrency: 1, inFlight: 1, waiting: 99, meanJobMs: 10_000 });
    // 9.1 jobs a second: a plain mean would make it 1.8.
    expect(verdict({ timeoutMs: 13_297 })).toBe('admitted');
    expect(verdict({ timeoutMs: 13_290 })).toBe('overloaded');
  });

  it('is not halved by a worker that has just started', () => {
    heartbeat({ inFlight: 10, waiting: 100 });
    heartbeat({ worker: 'two', concurrency: 1, inFlight: 1, waiting: 100, meanJobMs: 0 });
    expect(verdict({ timeoutMs: 6000 })).toBe('overloaded');
  });
});

describe('a pool that is held back', () => {
  it('is waited for by those who have the time', () => {
    heartbeat(limited(5000));
    expect(verdict({ timeoutMs: 5000 })).toBe('admitted');
    expect(refusal(4999)).toEqual({ code: 'provider_rate_limited', retryable: true, retryAfterMs: 5000 });
  });

  it('is held the shorter the older its heartbeat is, and not at all when it says so', () => {
    heartbeat(limited(5000));
    nowMs += 2000;
    expect(verdict({ timeoutMs: 3000 })).toBe('admitted');
    expect(refusal(1000)).toMatchObject({ code: 'provider_rate_limited', retryAfterMs: 3000 });
    heartbeat();
    expect(verdict({ timeoutMs: 0 })).toBe('admitted');
    heartbeat(limited(1000));
    nowMs += 2000;
    expect(verdict({ timeoutMs: 0 })).toBe('admitted');
  });

  it('has its backlog to work off as well', () => {
    heartbeat({ ...limited(5000), inFlight: 10, waiting: 99, meanJobMs: 1000 });
    expect(verdict({ timeoutMs: 17_100 })).toBe('admitted');
    expect(refusal(16_100)).toMatchObject({ code: 'provider_rate_limited', retryAfterMs: 5000 });
  });

  it('is overloaded when the backlog alone would be too long', () => {
    heartbeat({ ...limited(5000), inFlight: 10, waiting: 99, meanJobMs: 1000 });
    expect(refusal(11_100)).toEqual({ code: 'overloaded', retryable: true, retryAfterMs: 6000 });
  });

  it('does not keep anybody from another one that is not', () => {
    heartbeat(limited(60_000));
    heartbeat({ worker: 'two' });
    expect(verdict({ timeoutMs: 0 })).toBe('admitted');
    heartbeat({ worker: 'two', inFlight: 10, waiting: 49 });
    expect(verdict({ timeoutMs: 6600 })).toBe('admitted');
    expect(refusal(5600)).toMatchObject({ code: 'overloaded', retryAfterMs: 1000 });
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
    heartbeat();
    set({ intake: 'draining' });
    expect(verdict()).toBe('provider_unavailable');
    expect(pools.isServed({ provider: 'openai' })).toBe(false);
    expect(pools.isAbandoned({ provider: 'openai' })).toBe(false);
    set({ intake: 'paused' }, 1);
    expect(verdict()).toBe('provider_unavailable');
    set({}, 2);
    expect(verdict()).toBe('admitted');
  });

  it('admits to pools that are paused what they would do in time if they went on now', () => {
    set({ intake: 'paused' });
    heartbeat({ state: 'paused', pausedBy: 'operator', waiting: 19 });
    expect(verdict({ timeoutMs: 2200 })).toBe('admitted');
    expect(verdict({ timeoutMs: 2199 })).toBe('overloaded');
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
    expect(verdict({ timeoutMs: 0 })).toBe('admitted');
    set({ globalConcurrency: 5 });
    expect(verdict({ timeoutMs: 2200 })).toBe('admitted');
    expect(verdict({ timeoutMs: 2199 })).toBe('overloaded');
    expect(pools.totalConcurrency()).toBe(5);
    set({ globalConcurrency: 50 }, 2);
    expect(verdict({ timeoutMs: 0 })).toBe('admitted');
    expect(pools.totalConcurrency()).toBe(10);
  });

  it('has jobs begin no faster than the rate, although there is room', () => {
    heartbeat({ waiting: 6 });
    set({ rate: { max: 3, durationMs: 10_000 } });
    // 20 s until it begins, and a second until it is done.
    expect(verdict({ timeoutMs: 23_100 })).toBe('admitted');
    expect(verdict({ timeoutMs: 23_099 })).toBe('overloaded');
    expect(verdict({ timeoutMs: 22_000, isStream: true })).toBe('admitted');
    heartbeat();
    expect(verdict({ timeoutMs: 0 })).toBe('admitted');
    for (let n = 0; n < 6; n += 1) addJob(me);
    expect(verdict({ timeoutMs: 20_000 })).toBe('overloaded');
  });
});

describe('places', () => {
  it('is what all live pools can do at once, and unknown while nobody is', () => {
    expect(pools.totalConcurrency()).toBeUndefined();
    heartbeat();
    heartbeat({ worker: 'two', provider: 'bedrock', concurrency: 5 });
    expect(pools.totalConcurrency()).toBe(15);
    nowMs += 10_000;
    expect(pools.totalConcurrency()).toBeUndefined();
  });
});

describe('Heartbeats', () => {
  it('forgets workers ten minutes after their last heartbeat, although nothing has been asked since', () => {
    heartbeat({ worker: 'gone' });
    nowMs = startMs + 600_001;
    heartbeat({ worker: 'gone, too', state: 'stopped' });
    // Nothing else shows what is remembered: to a clock that goes back its heartbeat would be new.
    nowMs = startMs + 3500;
    expect(verdict()).toBe('provider_unavailable');
  });
});
