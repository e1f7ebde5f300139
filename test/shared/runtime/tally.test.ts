import { describe, expect, it } from 'vitest';
import { Tally } from '../../../shared/runtime/tally.js';

describe('Tally', () => {
  it('adds up by key and in all, and has nothing left of what was taken away again', () => {
    const tally = new Tally();
    for (const [key, count] of [
      ['one', 3],
      ['one', -1],
      ['two', 5],
      ['three', 2],
      ['three', -2],
    ] as const)
      tally.add(key, count);
    expect([tally.of('one'), tally.of('two'), tally.of('three'), tally.total]).toEqual([2, 5, 0, 7]);
  });
});
