import { describe, expect, it } from 'vitest';
import { summarise } from './rows.js';

const figures = (perSecond: number, api = 1) => ({
  ...{ answers: 1, perSecond, p50Ms: 1, p99Ms: 1, errors: 0, othersBusy: 0, cpuMs: { api, load: 100 } },
});
const names = ['candidate', 'baseline'];
const summary = (...rounds: [candidate: number, baseline: number][]) => {
  const round = ([candidate, baseline]: (typeof rounds)[number]) => ({
    ...{ candidate: figures(candidate, 3), baseline: figures(baseline, 2) },
  });
  return summarise('row', names, rounds.map(round));
};

describe('the summary of a row', () => {
  it('two sides -> divides the first by the second, round by round: answers, and processor time of what answers', () => {
    const { ratio, cpuRatio } = summary([75, 100], [1000, 1000], [2, 4], [5, 10]);
    expect(ratio).toEqual({ median: 0.625, least: 0.5, most: 1 });
    expect(cpuRatio).toEqual({ median: 1.5, least: 1.5, most: 1.5 });
  });

  it.each([
    ['slower', 'every round was by more than 5 %', [70, 80, 94]],
    ['no difference', 'one round was slower by less than 5 %', [50, 70, 96]],
    ['faster', 'every round was by more than 5 %', [106, 120, 140]],
    ['no difference', 'one round was faster by less than 5 %', [104, 120, 140]],
    ['slower', 'it gave no answers', [0, 0]],
    ['not judged', 'there was one round, which has no spread', [50]],
  ])('%s -> where %s', (verdict, _where, rounds) => {
    expect(summary(...rounds.map((candidate) => [candidate, 100] as [number, number])).verdict).toBe(verdict);
  });

  it('a round in which the second side gave no answers -> judges nothing', () => {
    expect(summary([10, 0], [1, 10])).toMatchObject({ ratio: undefined, verdict: 'not judged' });
  });
});
