import { beforeEach, describe, expect, it } from 'vitest';
import { createPoolView, type PoolView } from '../../api/pool-view.js';
import type { Failure } from '../../shared/failures.js';
import type { PoolBeat } from '../../shared/messages.js';

const startMs = 1_000_000;
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

/** `admitted`, or why not. */
function verdict({ patienceMs = 10_000, namesModel = true } = {}): string {
  try {
    pools.admit('openai', { patienceMs, namesModel });
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
    expect(verdict({ namesModel: false })).toBe('invalid_request');
    expect(verdict()).toBe('admitted');
    beat({ worker: 'two' });
    expect(verdict({ namesModel: false })).toBe('admitted');
    beat({ worker: 'two', state: 'paused' });
    expect(verdict({ namesModel: false })).toBe('invalid_request');
  });
});

describe('the predicted wait', () => {
  it('is none while there is room, however long the jobs take', () => {
    beat({ inFlight: 9, meanJobMs: 1_000_000 });
    expect(verdict({ patienceMs: 0 })).toBe('admitted');
  });

  it('is the backlog over the concurrency at the mean pace', () => {
    beat({ inFlight: 10, waiting: 99, meanJobMs: 1000 });
    expect(verdict({ patienceMs: 10_000 })).toBe('admitted');
    expect(verdict({ patienceMs: 9999 })).toBe('overloaded');
  });

  it('says how much too long it is', () => {
    beat({ inFlight: 10, waiting: 99, meanJobMs: 1000 });
    expect(() => pools.admit('openai', { patienceMs: 7000, namesModel: true })).toThrow(
      expect.objectContaining({ code: 'overloaded', facts: { provider: 'openai', retryAfterMs: 3000 } }),
    );
  });

  it('shrinks with every worker, and counts the shared backlog once', () => {
    beat({ inFlight: 10, waiting: 99 });
    beat({ worker: 'two', inFlight: 10, waiting: 99 });
    expect(verdict({ patienceMs: 5000 })).toBe('admitted');
    expect(verdict({ patienceMs: 4999 })).toBe('overloaded');
  });

  it('leaves paused workers out', () => {
    beat({ inFlight: 10, waiting: 99 });
    beat({ worker: 'two', state: 'paused', concurrency: 1000 });
    expect(verdict({ patienceMs: 9999 })).toBe('overloaded');
  });

  it('counts our own jobs at once, and each until it has settled', () => {
    beat();
    const settled = Array.from({ length: 109 }, () => pools.noteAdded('openai'));
    for (let n = 0; n < 500; n += 1) pools.noteAdded('bedrock');
    expect(verdict({ patienceMs: 10_000 })).toBe('admitted');
    expect(verdict({ patienceMs: 9999 })).toBe('overloaded');
    for (const settle of settled) settle();
    expect(verdict({ patienceMs: 0 })).toBe('admitted');
  });

  it('is not halved by a worker that has just started', () => {
    beat({ inFlight: 10, waiting: 100 });
    beat({ worker: 'two', concurrency: 1, inFlight: 1, waiting: 100, meanJobMs: 0 });
    expect(verdict({ patienceMs: 6000 })).toBe('overloaded');
  });
});
