import type { Round as AnyRound } from '../interleaved/interleave.js';
import { median, type Ratio, ratioOf } from '../interleaved/statistics.js';

/** The two checkouts that are compared: the one of the commit, and the one that the benchmark was started in. */
export const sides = ['baseline', 'candidate'] as const;

export type Side = (typeof sides)[number];

/** What one measurement of a row came to. */
export interface Measured {
  /** Expected answers per second. */
  readonly perSecond: number;
  readonly p50Ms?: number;
  readonly p99Ms?: number;
  /** Of API, worker and store together, for one answer; absent when it could not be measured. */
  readonly cpuMs?: number;
  readonly errors: number;
  /** Share of the machine's CPU time that went to none of ours: 0 to 1. */
  readonly othersBusy: number;
}

export type Round = AnyRound<Side, Measured>;

export type Verdict = 'slower' | 'faster' | 'no difference' | 'not judged';

/** What the rounds of one row say together. */
export interface Summary {
  /** Median answers per second. */
  readonly perSecond: Readonly<Record<Side, number>>;
  /** Candidate by baseline, of the answers per second; absent when the baseline gave none. */
  readonly ratio?: Ratio;
  /** Of the CPU time for one answer. It wavers less than the answers per second when others use the machine. */
  readonly cpuRatio?: Ratio;
  readonly errors: Readonly<Record<Side, number>>;
  readonly verdict: Verdict;
}

/** Below this nobody would notice, and a machine does not repeat itself any better. */
export const toleratedShare = 0.05;

/** Sums up the rounds of one row. */
export function summarise(rounds: readonly Round[]): Summary {
  const of = (side: Side, pick: (measured: Measured) => number) => rounds.map((round) => pick(round[side]));
  const bySide = (figure: (side: Side) => number): Record<Side, number> => ({
    baseline: figure('baseline'),
    candidate: figure('candidate'),
  });
  const ratio = ratioOf(rounds.map(({ baseline, candidate }) => [candidate.perSecond, baseline.perSecond]));
  const cpuRatio = ratioOf(rounds.map(({ baseline, candidate }) => [candidate.cpuMs, baseline.cpuMs]));
  return {
    perSecond: bySide((side) => median(of(side, ({ perSecond }) => perSecond))),
    ...(ratio && { ratio }),
    ...(cpuRatio && { cpuRatio }),
    errors: bySide((side) => of(side, ({ errors }) => errors).reduce((sum, one) => sum + one, 0)),
    verdict: judge(ratio, rounds.length),
  };
}

/**
 * The rule: a row is slower when the candidate was more than 5 % slower in every round, so that its whole spread lies
 * below; faster the other way round. One round has no spread.
 */
export function judge(ratio: Ratio | undefined, rounds: number): Verdict {
  if (ratio === undefined || rounds < 2) return 'not judged';
  if (ratio.most < 1 - toleratedShare) return 'slower';
  if (ratio.least > 1 + toleratedShare) return 'faster';
  return 'no difference';
}
