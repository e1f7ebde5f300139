import type { Ratio } from './interleaved/statistics.js';
import type { LoadErrors, LoadResult } from './load.js';
import type { Part, PartUsage } from './usage.js';

/** The cells and tables of reports, as Markdown. */

/** One column of a table: its title, and what a row has in it. */
export type Column<Row> = readonly [title: string, cell: (row: Row) => string];

export function table<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string {
  const line = (cells: string[]) => `| ${cells.join(' | ')} |\n`;
  const head = [columns.map(([title]) => title), columns.map(() => '---')];
  const body = rows.map((row) => columns.map(([, cell]) => cell(row)));
  return `${[...head, ...body].map(line).join('')}\n`;
}

/** What the parts are called. */
export const partTitles: Readonly<Record<Part, string>> = {
  api: 'API',
  worker: 'worker',
  store: 'store',
  simulator: 'simulator',
  load: 'load generator',
  peer: 'Portkey',
};

/** Says what `usageCell` shows. */
export const usageLegend =
  'Each process: CPU seconds in the measured time · CPU ms per request · resident MB at the peak / at the end.\n\n';

/** What one part used for the requests. */
export function usageCell(load: LoadResult, usage: PartUsage | undefined): string {
  if (usage === undefined) return 'not measured';
  const memory = `${number(usage.peakBytes / 1e6)} / ${number(usage.endBytes / 1e6)}`;
  return `${number(usage.cpuSeconds, 2)} · ${perRequest(load, usage.cpuSeconds)} · ${memory}`;
}

export function describeErrors(errors: LoadErrors): string {
  const counts: [number, string][] = [
    ...Object.entries(errors.wrongStatus).map(([status, count]): [number, string] => [count, `× ${status}`]),
    [errors.wrongBody, 'of another shape'],
    [errors.timeouts, 'timeouts'],
    [errors.socket, 'socket errors'],
    [errors.unanswered, 'unanswered'],
  ];
  const some = counts.filter(([count]) => count > 0).map(([count, kind]) => `${number(count)} ${kind}`);
  return some.join(', ') || '0 errors';
}

/** One run in one line, to watch the benchmark go. */
export function describeLoad(title: string, connections: number, load: LoadResult): string {
  const { p50Ms, p99Ms, errors } = load;
  return (
    `${title}, ${number(connections)} connection${connections === 1 ? '' : 's'}: ${perSecond(load)} requests/s, ` +
    `p50 ${ms(p50Ms)} ms, p99 ${ms(p99Ms)} ms, ${describeErrors(errors)}\n`
  );
}

export const perSecond = (load: LoadResult): string => perSecondCell(load.answers / load.seconds);

export const perSecondCell = (rate: number): string => number(rate, rate < 100 ? 1 : 0);

/** The median of the rounds, and the least to the most. */
export const ratioCell = (ratio: Ratio | undefined): string =>
  ratio ? `${number(ratio.median, 2)} (${number(ratio.least, 2)} to ${number(ratio.most, 2)})` : '–';

/** CPU milliseconds for each answer. */
export const perRequest = (load: LoadResult, cpuSeconds: number): string =>
  number((cpuSeconds * 1000) / load.answers, 3);

export const ms = (value: number | undefined, absent = '–'): string =>
  value === undefined ? absent : number(value, 2);

export const percent = (share: number): string => `${number(share * 100)} %`;

/** Not a number: there was nothing to count. */
export function number(value: number, digits = 0): string {
  if (!Number.isFinite(value)) return '–';
  return value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}
