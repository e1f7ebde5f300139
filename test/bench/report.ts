import { execFileSync } from 'node:child_process';
import { availableParallelism, cpus, loadavg } from 'node:os';
import type { Figures } from './load.js';
import { type Compared, median, productCpuMs, productParts, type Round, type RowResult } from './rows.js';

/** Under which conditions the numbers came about, as a Markdown list. */
export function describeConditions(more: Record<string, string>): string {
  const git = (...args: string[]) => execFileSync('git', args, { encoding: 'utf8' }).trim();
  const changes = git('status', '--porcelain') && ' with uncommitted changes';
  const conditions = {
    date: new Date().toISOString(),
    machine: `${availableParallelism()} × ${cpus()[0]?.model}, ${process.platform}, Node ${process.version}`,
    'load average before': loadAverage(),
    commit: `${git('rev-parse', '--short', 'HEAD')}${changes}`,
    ...more,
    shared: 'everything runs on this one machine over loopback, load generator and simulator too',
  };
  const lines = Object.entries(conditions).map(([name, value]) => `- ${name}: ${value}\n`);
  return lines.join('');
}

/** Over the last minute, five and fifteen. */
export const loadAverage = (): string =>
  loadavg()
    .map((value) => value.toFixed(2))
    .join(', ');

/** One round of a row in one line, to watch the benchmark go. */
export function describeRound(title: string, round: Round): string {
  const sides = Object.entries(round).map(([name, { perSecond }]) => `${name} ${number(perSecond)}`);
  return `${title}: ${sides.join(', ')} requests/s\n`;
}

/** A comparison as Markdown that can be pasted into a page. */
export function describeCompared({ title, names, rows }: Compared): string {
  const each = (cell: (all: readonly Figures[]) => string) => (row: RowResult) =>
    names.map((name) => cell(row.rounds.flatMap((round) => round[name] ?? []))).join(' / ');
  const medians = (pick: (figures: Figures) => number, digits?: number) =>
    each((all) => number(middle(all, pick), digits));
  const compared: Column<RowResult>[] = [
    ['requests/s, ratio', ({ ratio }) => ratioCell(ratio)],
    ['CPU, ratio', ({ cpuRatio }) => ratioCell(cpuRatio)],
    ['', ({ verdict }) => (verdict === 'slower' ? '**slower**' : verdict)],
  ];
  const columns: Column<RowResult>[] = [
    ['row', (row) => row.title],
    ['requests/s', medians(({ perSecond }) => perSecond)],
    ['p50, ms', medians(({ p50Ms }) => p50Ms, 2)],
    ['p99, ms', medians(({ p99Ms }) => p99Ms, 2)],
    ['CPU ms per request', each(cpuCell)],
    [
      'errors',
      each((all) =>
        number(
          all.reduce((sum, { errors }) => sum + errors, 0),
          0,
        ),
      ),
    ],
    ...(names.length > 1 ? compared : []),
  ];
  const all = rows.flatMap(({ rounds }) => rounds.flatMap((round) => Object.values(round)));
  const busy = number(100 * middle(all, ({ othersBusy }) => othersBusy));
  return (
    `\n${title}: ${names.join(' / ')}\n\n${table(columns, rows)}\nMedians over the rounds; a ratio is that of the ` +
    'first two sides in one round, with the least and the most of all. Slower: by more than 5 % in every round. ' +
    `CPU: ${productParts.join(' + ')}; not judged. Busy with anything else: ${busy} % of the machine (median).\n`
  );
}

const middle = (all: readonly Figures[], pick: (figures: Figures) => number): number =>
  median(all.map(pick).filter(Number.isFinite));

function cpuCell(all: readonly Figures[]): string {
  const parts = productParts.map((part) => middle(all, ({ cpuMs }) => cpuMs[part] ?? Number.NaN));
  const measured = parts.filter(Number.isFinite).map((part) => number(part, 2));
  const sum = number(middle(all, productCpuMs), 2);
  return measured.length > 1 ? `${sum} (${measured.join(' + ')})` : sum;
}

/** A figure, what it came to here, and what it must be, where it is not only told. */
export interface Figure {
  readonly title: string;
  readonly measured: number;
  readonly bound: readonly ['≤' | '≥', number] | undefined;
  readonly unit: string;
}

/** In milliseconds unless it says otherwise. */
export function figure(title: string, measured: number, bound?: Figure['bound'], unit = 'ms'): Figure {
  return { title, measured, bound, unit };
}

/** Whether the figure is what it must be; one that could not be measured is not. */
export const isKept = ({
  measured,
  bound: [sign, value] = ['≤', Number.POSITIVE_INFINITY],
}: Figure): boolean => (sign === '≤' ? measured <= value : measured >= value);

/** The figures as a Markdown table. */
export const describeFigures = (figures: readonly Figure[]): string =>
  table<Figure>(
    [
      ['figure', ({ title }) => title],
      ['must be', ({ bound, unit }) => (bound ? `${bound.join(' ')} ${unit}` : '–')],
      ['measured', ({ measured, unit }) => `${number(measured)} ${unit}`],
      ['', (one) => (isKept(one) ? 'kept' : '**missed**')],
    ],
    figures,
  );

/** The value that this share of the values does not exceed. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.ceil(share * sorted.length) - 1] ?? Number.NaN;
}

/** One column of a table: its title, and what a row has in it. */
type Column<Row> = readonly [title: string, cell: (row: Row) => string];

/** A table as Markdown. */
function table<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string {
  const head = [columns.map(([title]) => title), columns.map(() => '---')];
  const body = rows.map((row) => columns.map(([, cell]) => cell(row)));
  return [...head, ...body].map((cells) => `| ${cells.join(' | ')} |\n`).join('');
}

const ratioCell = (ratio: RowResult['ratio']): string =>
  ratio ? `${number(ratio.median, 2)} (${number(ratio.least, 2)} to ${number(ratio.most, 2)})` : '–';

/** A number for people; a dash when there was nothing to count. */
export function number(value: number, digits = value < 100 ? 1 : 0): string {
  if (!Number.isFinite(value)) return '–';
  return value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}
