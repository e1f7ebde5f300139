import { beforeEach, describe, expect, it } from 'vitest';
import { createPoolView, type PoolView } from '../../../../api/chat/pools/pool-registry.js';
import type { Failure } from '../../../../shared/failures.js';
import type { PoolBeat } from '../../../../shared/protocol/messages.js';

const startMs = 1_000_000;
const me = { provider: 'openai', user: 'me', isAsync: false } as const;
let nowMs: number;
let pools: PoolView;

beforeEach(() => {
  nowMs = startMs;
  pools = createPoolView({ since: startMs, now: () => nowMs });
});

const beat = (changes: Partial<PoolBeat> = {}) =>
  pools.noteBeat({
    v: 1,
    provider: 'openai',
    worker: 'one',
    state: 'serving',
    concurrency: 10,
    inFlight: 0,
    waiting: 0,
    meanJobMs: 1000,
    hasDefaultModel: true,
    ...changes,
  });

/** Why the request is refused, and when to come again. */
function refusal(patienceMs: number): object {
  try {
    pools.admit(me, { patienceMs, model: 'm' });
    return {};
  } catch (error) {
    const { code, retryable, facts } = error as Failure;
    return { code, retryable, retryAfterMs: facts.retryAfterMs };
  }
}

/** `admitted`, or why not. */
function verdict({ patienceMs = 10_000, model = 'm', isAsync = false, user = 'me' } = {}): string {
  try {
    pools.admit({ ...me, user, isAsync }, { patienceMs, model: model || undefined });
    return 'admitted';
  } catch (error) {
    return (error as Failure).code;
  }
}

/** Past the time in which a live worker must have been heard of. */
const afterGrace = () => {
  nowMs += 60_000;
};

describe('admit', () => {
  it('gives an unknown pool the benefit of the doubt until every live worker must have been heard of', () => {
    expect(verdict()).toBe('admitted');
    nowMs = startMs + 3000;
    expect(verdict()).toBe('admitted');
    nowMs = startMs + 5000;
    expect(verdict()).toBe('provider_unavailable');
  });

  it('gives it as well when all that was heard of is workers that have stopped', () => {
    beat();
    beat({ state: 'stopped' });
    expect(verdict()).toBe('admitted');
    nowMs = startMs + 5000;
    expect(verdict()).toBe('provider_unavailable');
  });

  it('gives it again after an outage of the store, in which nobody could be heard', () => {
    beat();
    afterGrace();
    expect(verdict()).toBe('provider_unavailable');
    pools.noteOutage();
    nowMs += 3000;
    expect(verdict()).toBe('admitted');
    nowMs += 1000;
    expect(verdict()).toBe('provider_unavailable');
  });

  it('counts a worker that missed two beats, and not one that has fallen silent', () => {
    afterGrace();
    beat();
    nowMs += 3000;
    expect(verdict()).toBe('admitted');
    nowMs += 1000;
    expect(verdict()).toBe('provider_unavailable');
    beat();
    expect(verdict()).toBe('admitted');
  });

  it('goes by the newest beat of each worker', () => {
    afterGrace();
    beat({ state: 'paused' });
    beat({ worker: 'two' });
    expect(verdict()).toBe('admitted');
    beat({ worker: 'two', state: 'paused' });
    expect(verdict()).toBe('provider_unavailable');
    beat();
    expect(verdict()).toBe('admitted');
  });

  it('refuses at once when every worker is paused, even among those just heard of', () => {
    beat({ state: 'paused' });
    expect(verdict()).toBe('provider_unavailable');
  });

  it('lets a probing pool have a job', () => {
    beat({ state: 'probing' });
    expect(verdict()).toBe('admitted');
  });

  it('forgets a worker that stopped', () => {
    afterGrace();
    beat();
    beat({ worker: 'two', state: 'paused' });
    beat({ state: 'stopped' });
    expect(verdict()).toBe('provider_unavailable');
  });

  it('does not take the workers of one provider for those of another', () => {
    afterGrace();
    beat({ provider: 'bedrock' });
    expect(verdict()).toBe('provider_unavailable');
  });

  it('demands a model where no pool has one', () => {
    beat({ hasDefaultModel: false });
    expect(verdict({ model: '' })).toBe('invalid_request');
    expect(verdict()).toBe('admitted');
    beat({ worker: 'two' });
    expect(verdict({ model: '' })).toBe('admitted');
    beat({ worker: 'two', state: 'paused' });
    expect(verdict({ model: '' })).toBe('invalid_request');
  });

  it('refuses a model that no pool may be asked for', () => {
    beat({ defaultModel: 'projects/p/endpoints/1', models: ['gpt-*'] });
    expect(verdict({ model: 'gpt-5' })).toBe('admitted');
    expect(verdict({ model: 'projects/p/endpoints/1' })).toBe('admitted');
    expect(verdict({ model: 'projects/p/endpoints/2' })).toBe('invalid_request');
    beat({ worker: 'two', models: ['*'] });
    expect(verdict({ model: 'projects/p/endpoints/2' })).toBe('admitted');
    beat({ worker: 'two', hasDefaultModel: false });
    expect(verdict({ model: 'projects/p/endpoints/2' })).toBe('invalid_request');
    expect(verdict({ model: 'plain' })).toBe('admitted');
  });

  it('refuses a model whose breaker is open at every pool, and no other', () => {
    const breakers = [{ model: 'm', state: 'open' as const, nextProbeMs: 2000 }];
    beat({ breakers, defaultModel: 'm' });
    expect(verdict({ model: 'm' })).toBe('provider_unavailable');
    expect(verdict({ model: '' })).toBe('provider_unavailable');
    expect(verdict({ model: 'other' })).toBe('admitted');
    beat({ worker: 'two' });
    expect(verdict({ model: 'm' })).toBe('admitted');
    beat({ worker: 'two', breakers });
    expect(verdict({ model: 'm' })).toBe('provider_unavailable');
    nowMs += 2000;
    expect(verdict({ model: 'm' })).toBe('admitted');
  });

  it('refuses a model that is limited beyond the deadline, and no other', () => {
    beat({ breakers: [{ model: 'm', state: 'limited', nextProbeMs: 3000 }] });
    expect(verdict({ model: 'm', patienceMs: 2000 })).toBe('provider_rate_limited');
    expect(verdict({ model: 'm', patienceMs: 4000 })).toBe('admitted');
    expect(verdict({ model: 'other', patienceMs: 2000 })).toBe('admitted');
  });

  it('leaves it to a worker of the release before, which does not tell its default model', () => {
    beat();
    expect(verdict({ model: 'projects/p/endpoints/1' })).toBe('admitted');
  });
});

describe('the predicted wait', () => {
  it('is none while there is room, however long the jobs take', () => {
    beat({ inFlight: 9, meanJobMs: 1_000_000 });
    expect(verdict({ patienceMs: 0 })).toBe('admitted');
  });

  it('is the backlog, and the job itself, over the concurrency at the mean pace, and a tenth more', () => {
    beat({ inFlight: 10, waiting: 99, meanJobMs: 1000 });
    expect(verdict({ patienceMs: 12_100 })).toBe('admitted');
    expect(verdict({ patienceMs: 12_099 })).toBe('overloaded');
  });

  it('says how much too long it is', () => {
    beat({ inFlight: 10, waiting: 99, meanJobMs: 1000 });
    expect(() => pools.admit(me, { patienceMs: 9100, model: 'm' })).toThrow(
      expect.objectContaining({ code: 'overloaded', facts: { provider: 'openai', retryAfterMs: 3000 } }),
    );
  });

  it('shrinks with every worker, and counts the shared backlog once', () => {
    beat({ inFlight: 10, waiting: 99 });
    beat({ worker: 'two', inFlight: 10, waiting: 99 });
    expect(verdict({ patienceMs: 6600 })).toBe('admitted');
    expect(verdict({ patienceMs: 6599 })).toBe('overloaded');
  });

  it('leaves paused workers out', () => {
    beat({ inFlight: 10, waiting: 99 });
    beat({ worker: 'two', state: 'paused', concurrency: 1000 });
    expect(verdict({ patienceMs: 9999 })).toBe('overloaded');
  });

  it('counts our own jobs at once, and each until it has settled', () => {
    beat();
    const settled = Array.from({ length: 109 }, () => pools.noteAdded(me));
    for (let n = 0; n < 500; n += 1) pools.noteAdded({ ...me, provider: 'bedrock' });
    expect(verdict({ patienceMs: 12_100 })).toBe('admitted');
    expect(verdict({ patienceMs: 12_099 })).toBe('overloaded');
    for (const { release } of settled) release();
    expect(verdict({ patienceMs: 0 })).toBe('admitted');
  });

  it('leaves asynchronous jobs out for who waits, and counts all for an asynchronous one', () => {
    beat({ inFlight: 10, waiting: 9, waitingAsync: 90 });
    expect(verdict({ patienceMs: 2200 })).toBe('admitted');
    expect(verdict({ patienceMs: 2199 })).toBe('overloaded');
    expect(verdict({ patienceMs: 12_100, isAsync: true })).toBe('admitted');
    expect(verdict({ patienceMs: 12_099, isAsync: true })).toBe('overloaded');
  });

  it('counts our own asynchronous jobs for who waits as far as they may be running', () => {
    beat();
    const settled = Array.from({ length: 104 }, () => pools.noteAdded({ ...me, isAsync: true }));
    for (let n = 0; n < 5; n += 1) settled.push(pools.noteAdded(me));
    expect(verdict({ patienceMs: 1210 })).toBe('admitted');
    expect(verdict({ patienceMs: 1209 })).toBe('overloaded');
    expect(verdict({ patienceMs: 12_100, isAsync: true })).toBe('admitted');
    expect(verdict({ patienceMs: 12_099, isAsync: true })).toBe('overloaded');
    for (const { release } of settled) release();
    expect(verdict({ patienceMs: 0, isAsync: true })).toBe('admitted');
  });

  it('leaves out what is taken after the newcomer, because its user has more outstanding', () => {
    beat({ inFlight: 10, waiting: 500, waitingByLevel: [1, 1, 2, 4, 8, 16, 32, 64, 128, 244] });
    for (let n = 0; n < 500; n += 1) pools.noteAdded(me);
    expect(verdict({ patienceMs: 30_000 })).toBe('overloaded');
    expect(verdict({ patienceMs: 1320, user: 'another' })).toBe('admitted');
    expect(verdict({ patienceMs: 1319, user: 'another' })).toBe('overloaded');
  });

  it('leaves out asynchronous jobs of those who have more for one who has none', () => {
    const waitingAsyncByLevel = [1, 1, 2, 4, 8, 16, 32, 64, 72];
    beat({ inFlight: 10, waitingAsync: 200, waitingAsyncByLevel });
    for (let n = 0; n < 200; n += 1) pools.noteAdded({ ...me, isAsync: true });
    expect(verdict({ patienceMs: 20_000, isAsync: true })).toBe('overloaded');
    expect(verdict({ patienceMs: 1320, isAsync: true, user: 'another' })).toBe('admitted');
  });

  it('goes by the age of the oldest job while none has ended', () => {
    beat({ inFlight: 10, waiting: 99, meanJobMs: 0, oldestJobMs: 1000 });
    expect(verdict({ patienceMs: 12_100 })).toBe('admitted');
    expect(verdict({ patienceMs: 12_099 })).toBe('overloaded');
  });

  it('weighs the pace of a pool by how much it does at once', () => {
    beat({ concurrency: 9, inFlight: 9, waiting: 99, meanJobMs: 1000 });
    beat({ worker: 'slow', concurrency: 1, inFlight: 1, waiting: 99, meanJobMs: 10_000 });
    // 9.1 jobs a second: a plain mean would make it 1.8.
    expect(verdict({ patienceMs: 13_297 })).toBe('admitted');
    expect(verdict({ patienceMs: 13_290 })).toBe('overloaded');
  });

  it('is not halved by a worker that has just started', () => {
    beat({ inFlight: 10, waiting: 100 });
    beat({ worker: 'two', concurrency: 1, inFlight: 1, waiting: 100, meanJobMs: 0 });
    expect(verdict({ patienceMs: 6000 })).toBe('overloaded');
  });
});

describe('a pool that is held back', () => {
  it('is waited for by those who have the time', () => {
    beat({ heldForMs: 5000 });
    expect(verdict({ patienceMs: 5000 })).toBe('admitted');
    expect(refusal(4999)).toEqual({ code: 'provider_rate_limited', retryable: true, retryAfterMs: 5000 });
  });

  it('is held the shorter the older its beat is, and not at all when it says so', () => {
    beat({ heldForMs: 5000 });
    nowMs += 2000;
    expect(verdict({ patienceMs: 3000 })).toBe('admitted');
    expect(refusal(1000)).toMatchObject({ code: 'provider_rate_limited', retryAfterMs: 3000 });
    beat();
    expect(verdict({ patienceMs: 0 })).toBe('admitted');
    beat({ heldForMs: 1000 });
    nowMs += 2000;
    expect(verdict({ patienceMs: 0 })).toBe('admitted');
  });

  it('has its backlog to work off as well', () => {
    beat({ heldForMs: 5000, inFlight: 10, waiting: 99, meanJobMs: 1000 });
    expect(verdict({ patienceMs: 17_100 })).toBe('admitted');
    expect(refusal(16_100)).toMatchObject({ code: 'provider_rate_limited', retryAfterMs: 5000 });
  });

  it('is overloaded when the backlog alone would be too long', () => {
    beat({ heldForMs: 5000, inFlight: 10, waiting: 99, meanJobMs: 1000 });
    expect(refusal(11_100)).toEqual({ code: 'overloaded', retryable: true, retryAfterMs: 6000 });
  });

  it('does not keep anybody from another one that is not', () => {
    beat({ heldForMs: 60_000 });
    beat({ worker: 'two' });
    expect(verdict({ patienceMs: 0 })).toBe('admitted');
    beat({ worker: 'two', inFlight: 10, waiting: 49 });
    expect(verdict({ patienceMs: 6600 })).toBe('admitted');
    expect(refusal(5600)).toMatchObject({ code: 'overloaded', retryAfterMs: 1000 });
  });

  it('counts for its room once it is let go', () => {
    beat({ heldForMs: 2000, concurrency: 90, waiting: 99 });
    beat({ worker: 'two', heldForMs: 1000, concurrency: 1, waiting: 99 });
    expect(verdict({ patienceMs: 4000 })).toBe('admitted');
    beat({ state: 'paused', heldForMs: 2000, concurrency: 90, waiting: 99 });
    expect(verdict({ patienceMs: 4000 })).toBe('overloaded');
  });
});

describe('places', () => {
  it('is what all live pools can do at once, and unknown while nobody is', () => {
    expect(pools.places()).toBeUndefined();
    beat();
    beat({ worker: 'two', provider: 'bedrock', concurrency: 5 });
    expect(pools.places()).toBe(15);
    nowMs += 10_000;
    expect(pools.places()).toBeUndefined();
  });
});

describe('noteBeat', () => {
  it('forgets whoever has fallen silent, although nobody has asked since', () => {
    beat({ worker: 'gone' });
    nowMs = startMs + 10_000;
    beat({ worker: 'gone, too', state: 'stopped' });
    // Nothing else shows what is remembered: to a clock that goes back its beat would be new.
    nowMs = startMs + 3500;
    expect(verdict()).toBe('provider_unavailable');
  });
});
