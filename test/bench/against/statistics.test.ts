import { describe, expect, it } from 'vitest';
import { judge, type Round, summarise } from './statistics.js';

const roundOf = (baseline: number, candidate: number): Round => ({
  baseline: { perSecond: baseline, cpuMs: 2, errors: 0, othersBusy: 0 },
  candidate: { perSecond: candidate, cpuMs: 3, errors: 1, othersBusy: 0 },
});

describe('summarise', () => {
  it('divides the candidate by the baseline', () => {
    const { perSecond, ratio } = summarise([roundOf(100, 90), roundOf(1000, 1000), roundOf(10, 8)]);
    expect(perSecond).toEqual({ baseline: 100, candidate: 90 });
    expect(ratio).toEqual({ median: 0.9, least: 0.8, most: 1 });
  });

  it('calls a candidate faster whose rounds all were', () => {
    expect(summarise([roundOf(10, 20), roundOf(10, 20)]).verdict).toBe('faster');
  });

  it('compares the CPU time for one answer and adds up the errors', () => {
    const { cpuRatio, errors } = summarise([roundOf(1, 1), roundOf(1, 1)]);
    expect(cpuRatio).toEqual({ median: 1.5, least: 1.5, most: 1.5 });
    expect(errors).toEqual({ baseline: 0, candidate: 2 });
  });

  it('has no ratio, and judges nothing, when the baseline gave no answers', () => {
    const summary = summarise([roundOf(0, 10), roundOf(10, 1)]);
    expect(summary).not.toHaveProperty('ratio');
    expect(summary.verdict).toBe('not judged');
  });

  it('calls a candidate without answers slower', () => {
    expect(summarise([roundOf(10, 0), roundOf(10, 0)]).verdict).toBe('slower');
  });
});

describe('judge', () => {
  it.each([
    ['slower', 'every round was more than 5 % slower', { least: 0.7, median: 0.8, most: 0.94 }],
    ['no difference', 'one round was less than 5 % slower', { least: 0.5, median: 0.7, most: 0.96 }],
    ['no difference', 'it is slower by less than 5 %', { least: 0.96, median: 0.97, most: 0.98 }],
    ['faster', 'every round was more than 5 % faster', { least: 1.06, median: 1.2, most: 1.4 }],
    ['no difference', 'one round was less than 5 % faster', { least: 1.04, median: 1.2, most: 1.4 }],
  ])('says %s when %s', (verdict, _when, ratio) => {
    expect(judge(ratio, 4)).toBe(verdict);
  });

  it('does not judge by one round, which has no spread', () => {
    expect(judge({ least: 0.5, median: 0.5, most: 0.5 }, 1)).toBe('not judged');
  });
});
