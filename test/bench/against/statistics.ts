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

/** One measurement of each side, one straight after the other. */
export type Round = Readonly<Record<Side, Measured>>;

/** Candidate by baseline, over the rounds. */
export interface Ratio {
  readonly median: number;
  readonly least: number;
  readonly most: number;
}

export type Verdict = 'slower' | 'faster' | 'no difference' | 'not judged';

/** What the rounds of one row say together. */
export interface Summary {
  /** Median answers per second. */
  readonly perSecond: Readonly<Record<Side, number>>;
  /** Of the answers per second in each round; absent when the baseline gave none. */
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
  const ratio = ratioOf(rounds, ({ perSecond }) => perSecond);
  const cpuRatio = ratioOf(rounds, ({ cpuMs }) => cpuMs);
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

function ratioOf(
  rounds: readonly Round[],
  pick: (measured: Measured) => number | undefined,
): Ratio | undefined {
  const ratios = rounds.flatMap(({ baseline, candidate }) => {
    const [before, after] = [pick(baseline), pick(candidate)];
    return before !== undefined && after !== undefined && before > 0 ? [after / before] : [];
  });
  if (ratios.length < rounds.length || ratios.length === 0) return undefined;
  return { median: median(ratios), least: Math.min(...ratios), most: Math.max(...ratios) };
}

/** The middle one, or the mean of the two in the middle; not a number when there is none. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((one, other) => one - other);
  const middle = sorted.length / 2;
  const [low, high] = [sorted[Math.ceil(middle) - 1], sorted[Math.floor(middle)]];
  return low === undefined || high === undefined ? Number.NaN : (low + high) / 2;
}
