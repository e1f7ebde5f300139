import { describe, expect, it } from 'vitest';
import { groupsOf } from './load-groups.js';
import type { Traffic } from './traffic.js';

const traffic: Traffic = {
  ...{ origin: 'http://a', method: 'GET', headers: {}, targets: [], bodies: [] },
  expected: { status: 200, body: { kind: 'empty' } },
};

describe('groupsOf', () => {
  it('begins all connections at once unless they are to be spread', () => {
    const all = { afterMs: 0, first: 0, connections: 1000, origin: 'http://a' };
    expect(groupsOf({ connections: 1000, traffic })).toEqual([all]);
  });

  it('spreads every connection evenly over the time', () => {
    const groups = groupsOf({ connections: 250, traffic, spreadSeconds: 2 });
    expect(groups).toHaveLength(100);
    expect(groups.reduce((sum, { connections }) => sum + connections, 0)).toBe(250);
    expect(groups.map(({ first }) => first)).toEqual([...new Set(groups.map(({ first }) => first))]);
    expect(groups[1]?.afterMs).toBe(20);
    expect(groups.at(-1)?.afterMs).toBe(1980);
  });

  it('leads them to the origins in turns', () => {
    const groups = groupsOf({ connections: 5, traffic, origins: ['http://a', 'http://b'] });
    expect(groups.map(({ origin, connections }) => [origin, connections])).toEqual([
      ['http://a', 2],
      ['http://b', 3],
    ]);
  });
});
