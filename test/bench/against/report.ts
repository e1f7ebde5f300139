import type { Conditions } from '../conditions.js';
import { median } from '../interleaved/statistics.js';
import { type Column, number, percent, perSecondCell, ratioCell, table } from '../table.js';
import type { RowResult } from './comparison.js';
import { type Round, sides, toleratedShare, type Verdict } from './statistics.js';

/** Everything that came of a comparison; what `--json` writes. */
export interface Comparison {
  readonly conditions: Conditions;
  readonly rows: readonly RowResult[];
  /** What could not be compared, and why. */
  readonly skipped: readonly string[];
}

/** One round of a row in one line, to watch the comparison go. */
export function describeRound(title: string, { baseline, candidate }: Round): string {
  const ratio = candidate.perSecond / baseline.perSecond;
  return `${title}: ${perSecondCell(baseline.perSecond)} → ${perSecondCell(candidate.perSecond)} requests/s, × ${number(ratio, 2)}\n`;
}

/** All of it as Markdown that can be pasted into a page. */
export function describeComparison({ conditions, rows, skipped }: Comparison): string {
  const slower = rows.filter(({ verdict }) => verdict === 'slower');
  const measured = rows.flatMap(({ rounds }) => rounds.flatMap((round) => sides.map((side) => round[side])));
  const others = median(measured.map(({ othersBusy }) => othersBusy).filter(Number.isFinite));
  return [
    table(columns, rows),
    legend,
    `Load average after: ${conditions.find(([name]) => name === 'load average after')?.[1]}. `,
    `Busy with anything else while measuring: ${percent(others)} of the machine (median).\n\n`,
    ...skipped.map((line) => `- did not run: ${line}\n`),
    `${slower.length} of ${rows.length} rows slower${slower.length > 0 ? ': ' : ''}`,
    `${slower.map(({ title }) => title).join('; ')}\n`,
  ].join('');
}

const tolerated = percent(toleratedShare);

const legend =
  'Medians over the rounds. A ratio is candidate / baseline in one round: its median, and the least to the most of ' +
  `all rounds. Slower: by more than ${tolerated} in every round; faster: the same the other way round. CPU: of API, ` +
  'worker and store for one answer, not judged.\n\n';

const verdictTitles: Readonly<Record<Verdict, string>> = {
  slower: '**slower**',
  faster: 'faster',
  'no difference': 'no difference shown',
  'not judged': 'not judged',
};

const columns: readonly Column<RowResult>[] = [
  ['row', ({ title }) => title],
  ['baseline, requests/s', ({ perSecond }) => perSecondCell(perSecond.baseline)],
  ['candidate, requests/s', ({ perSecond }) => perSecondCell(perSecond.candidate)],
  ['ratio', ({ ratio }) => ratioCell(ratio)],
  ['CPU per answer, ratio', ({ cpuRatio }) => ratioCell(cpuRatio)],
  ['errors', ({ errors }) => `${number(errors.baseline)} / ${number(errors.candidate)}`],
  ['', ({ verdict }) => verdictTitles[verdict]],
];
