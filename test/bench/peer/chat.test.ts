import { describe, expect, it } from 'vitest';
import { lengthsOf, planLoads } from './chat.js';

describe('planLoads', () => {
  it('has all numbers of connections for each time of the provider', () => {
    expect(planLoads([0, 60], [1, 32])).toEqual([
      { latencyMs: 0, connections: 1 },
      { latencyMs: 0, connections: 32 },
      { latencyMs: 60, connections: 1 },
      { latencyMs: 60, connections: 32 },
    ]);
  });
});

describe('lengthsOf', () => {
  it('measures for as long as was asked when answers are short', () => {
    expect(lengthsOf({ latencyMs: 60, connections: 1 }, 2)).toEqual({
      ...{ seconds: 2, warmUpSeconds: 1, timeoutSeconds: 10 },
    });
  });

  it('measures for several times as long as an answer takes', () => {
    expect(lengthsOf({ latencyMs: 5000, connections: 1 }, 2)).toEqual({
      ...{ seconds: 40, warmUpSeconds: 10, timeoutSeconds: 15 },
    });
  });
});
