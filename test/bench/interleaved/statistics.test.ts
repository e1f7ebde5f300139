import { describe, expect, it } from 'vitest';
import { median, ratioOf } from './statistics.js';

describe('median', () => {
  it.each([
    [[3, 1, 2], 2],
    [[4, 1, 3, 2], 2.5],
    [[100, 9], 54.5],
    [[], Number.NaN],
  ])('of %j is %d', (values, expected) => {
    expect(median(values)).toBe(expected);
  });
});

describe('ratioOf', () => {
  it('divides round by round, so that a slow moment of the machine counts for both sides', () => {
    const ratio = ratioOf([
      [90, 100],
      [1000, 1000],
      [8, 10],
    ]);
    expect(ratio).toEqual({ median: 0.9, least: 0.8, most: 1 });
  });

  it.each([[[10, 0]], [[undefined, 10]], [[10, undefined]]])('gives none when a round has %j', (pair) => {
    expect(ratioOf([[1, 2], pair as [number, number]])).toBeUndefined();
  });

  it('gives none without rounds', () => {
    expect(ratioOf([])).toBeUndefined();
  });
});
