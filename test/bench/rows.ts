import { type Figures, measure, type Traffic } from './load.js';
import type { Part, PartPids } from './usage.js';

/** What is measured: a checkout of ours, another program, or a simulator alone. */
export interface Side<Task> {
  readonly pids: PartPids;
  /** Rejects when one of its programs ends although it was not asked to. */
  readonly failed?: Promise<never>;
  traffic(task: Task): Traffic;
}

/** One kind of request that each side is asked. */
export interface Row<Task> {
  readonly title: string;
  readonly task: Task;
  readonly connections: number;
}

/** One measurement of each side, one straight after the other. */
export type Round = Readonly<Record<string, Figures>>;

/** One side's figures divided by another's, round by round: a slow moment of the machine counts for both. */
export type Ratio = Readonly<Record<'median' | 'least' | 'most', number>>;

/** What the rounds of one row say together; ratios are the first side's by the second's, where there are two. */
export interface RowResult {
  readonly title: string;
  readonly rounds: readonly Round[];
  readonly ratio?: Ratio | undefined;
  /** Of the processor time for one answer. It wavers less when other programs use the machine. */
  readonly cpuRatio?: Ratio | undefined;
  readonly verdict: 'slower' | 'faster' | 'no difference' | 'not judged';
}

/** The rows that were measured, on these sides. */
export interface Compared {
  readonly title: string;
  readonly names: readonly string[];
  readonly rows: readonly RowResult[];
}

export interface CompareDeps {
  readonly title: string;
  readonly rounds: number;
  readonly seconds: number;
  readonly stopping: AbortSignal;
  onRound(row: string, round: Round): void;
}

/** Measures the rows on all sides in turns. */
export async function compare<Task>(
  sides: Readonly<Record<string, Side<Task>>>,
  rows: readonly Row<Task>[],
  { title, seconds, stopping, ...deps }: CompareDeps,
): Promise<Compared> {
  const names = Object.keys(sides);
  const failed = Object.values(sides).flatMap((side) => side.failed ?? []);
  const run = (name: string, { task, connections }: Row<Task>, warmUpSeconds = 0, measuredSeconds = 2) => {
    const { pids, traffic } = sides[name] as Side<Task>;
    const order = { traffic: traffic(task), connections, warmUpSeconds, seconds: measuredSeconds };
    return Promise.race([measure(order, pids, stopping), ...failed]);
  };
  // Unmeasured: code that Node compiles late must not count against the first rounds.
  for (const row of rows.slice(0, 2)) for (const name of names) await run(name, row);
  const measureRow = (name: string, row: Row<Task>) => run(name, row, 1, seconds);
  const measured = await inTurns(names, rows, { ...deps, measureRow });
  const results = rows.map((row, place) => summarise(row.title, names, measured[place] ?? []));
  return { title, names, rows: results };
}

interface Turns<AnyRow> extends Pick<CompareDeps, 'rounds' | 'onRound'> {
  measureRow(name: string, row: AnyRow): Promise<Figures>;
}

/**
 * Measures all sides of each row straight after one another, all rows in each round. The order turns round from one
 * round to the next (ABBA), so that a machine that gets steadily slower or faster favours no side.
 */
async function inTurns<AnyRow extends { title: string }>(
  names: readonly string[],
  rows: readonly AnyRow[],
  { rounds, onRound, measureRow }: Turns<AnyRow>,
): Promise<Round[][]> {
  const measured: Round[][] = rows.map(() => []);
  for (let number = 0; number < rounds; number += 1)
    for (const [place, row] of rows.entries()) {
      const round: Record<string, Figures> = {};
      for (const name of number % 2 === 0 ? names : names.toReversed())
        round[name] = await measureRow(name, row);
      measured[place]?.push(round);
      onRound(row.title, round);
    }
  return measured;
}

/** Sums up the rounds of one row. */
export function summarise(
  title: string,
  [ours = '', other]: readonly string[],
  rounds: readonly Round[],
): RowResult {
  if (other === undefined) return { title, rounds, verdict: 'not judged' };
  const ratioBy = (figure: (figures: Figures | undefined) => number) =>
    ratioOf(rounds.map((round) => figure(round[ours]) / figure(round[other])));
  const ratio = ratioBy((figures) => figures?.perSecond ?? Number.NaN);
  return { title, rounds, ratio, cpuRatio: ratioBy(productCpuMs), verdict: judge(ratio, rounds.length) };
}

/** What answers; the others only play the client and the provider. */
export const productParts: readonly Part[] = ['api', 'worker', 'store', 'peer'];

/** Milliseconds of processor time for one answer, of all that answers together; not a number when not measured. */
export function productCpuMs(figures: Figures | undefined): number {
  const parts = productParts.flatMap((part) => figures?.cpuMs[part] ?? []);
  return parts.length === 0 ? Number.NaN : parts.reduce((sum, one) => sum + one);
}

/** Undefined when a round had nothing to divide, or to divide by. */
function ratioOf(ratios: readonly number[]): Ratio | undefined {
  if (ratios.length === 0 || !ratios.every(Number.isFinite)) return undefined;
  return { median: median(ratios), least: Math.min(...ratios), most: Math.max(...ratios) };
}

/** Below this nobody would notice, and a machine does not repeat itself any better. */
const toleratedShare = 0.05;

/** Slower: by more than 5 % in every round, so that the whole spread lies below; one round has no spread. */
function judge(ratio: Ratio | undefined, rounds: number): RowResult['verdict'] {
  if (ratio === undefined || rounds < 2) return 'not judged';
  if (ratio.most < 1 - toleratedShare) return 'slower';
  return ratio.least > 1 + toleratedShare ? 'faster' : 'no difference';
}

/** The middle one, or the mean of the two in the middle; not a number when there is none. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  const middle = sorted.length / 2;
  return ((sorted[Math.ceil(middle) - 1] ?? Number.NaN) + (sorted[Math.floor(middle)] ?? Number.NaN)) / 2;
}
