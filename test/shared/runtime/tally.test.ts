import { describe, expect, it } from 'vitest';
import { Tally } from '../../../shared/runtime/tally.js';

describe('Tally', () => {
  it('adds up by key and in all', () => {
    const tally = new Tally();
    tally.add('one', 3);
    tally.add('one', -1);
    tally.add('two', 5);
    expect([tally.of('one'), tally.of('two'), tally.of('three'), tally.total]).toEqual([2, 5, 0, 7]);
  });

  it('has nothing left of what was taken away again', () => {
    const tally = new Tally();
    tally.add('one', 3);
    tally.add('one', -3);
    expect([tally.of('one'), tally.total]).toEqual([0, 0]);
  });
});
