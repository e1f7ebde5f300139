import type { AimResult } from '../aims.js';
import type { Conditions } from '../conditions.js';
import { median } from '../interleaved/statistics.js';
import { storeTitles } from '../store.js';
import { describeStreams } from '../streams/report.js';
import type { StreamFigures } from '../streams/results.js';
import { type Column, ms, number, partTitles, percent, perSecondCell, ratioCell, table } from '../table.js';
import type { Part } from '../usage.js';
import type { ChatResults, RowResult } from './chat.js';
import type { RatioName, Round } from './figures.js';
import type { InFlightResults } from './in-flight.js';
import { describeInFlight } from './in-flight-report.js';
import { type Side, sides } from './sides.js';

/** Everything that came of a run beside another gateway; what `--json` writes. */
export interface PeerResults {
  readonly conditions: Conditions;
  readonly chats: readonly ChatResults[];
  readonly inFlight: readonly InFlightResults[];
  readonly streams: readonly StreamFigures[];
  /** What did not run, and why. */
  readonly skipped: readonly string[];
  readonly aims: readonly AimResult[];
}

/** One round of a row in one line, to watch the benchmark go. */
export function describeRound(title: string, { quillgate, portkey, simulator }: Round): string {
  const ratio = quillgate.perSecond / portkey.perSecond;
  const rates = [quillgate, portkey, simulator].map(({ perSecond }) => perSecondCell(perSecond));
  return `${title}: ours ${rates[0]}, Portkey ${rates[1]}, simulator ${rates[2]} requests/s, × ${number(ratio, 2)}\n`;
}

/** All of it as Markdown that can be pasted into a page. */
export function describePeerResults({ chats, inFlight, streams, skipped, aims }: PeerResults): string {
  return [
    ...chats.map(describeChat),
    ...inFlight.map(describeInFlight),
    ...(streams.length > 0 ? [describeStreams(streams)] : []),
    ...skipped.map((line) => `- did not run: ${line}\n`),
    '\nAims:\n\n',
    ...aims.map(({ aim, verdict, numbers }) => `- ${verdict}: ${aim} (${numbers})\n`),
  ].join('');
}

function describeChat(chat: ChatResults): string {
  const all = chat.rows.flatMap(({ rounds }) => rounds.flatMap((round) => sides.map((side) => round[side])));
  return [
    `${storeTitles[chat.store]}: ours / Portkey / the simulator alone, medians over the rounds. A ratio is ours by Portkey's in one `,
    'round: its median, and the least to the most of all rounds. p99 is left out where a round had fewer than 100 answers.\n\n',
    table(speedColumns, chat.rows),
    'CPU ms per request. Of the simulator and the load generator: while ours / Portkey / the simulator answered.\n\n',
    table(cpuColumns, chat.rows),
    'Resident MB at the peak of all rounds, and what the store was asked for one request of ours beyond an idle second.\n\n',
    table(costColumns, chat.rows),
    describeIdle(chat),
    `Busy with anything else while measuring: ${percent(median(all.map(({ othersBusy }) => othersBusy).filter(Number.isFinite)))} `,
    'of the machine (median).\n\n',
  ].join('');
}

function describeIdle({ idlePerSecond: { cpuMs, store } }: ChatResults): string {
  const parts = (Object.entries(cpuMs) as [Part, number][])
    .filter(([part]) => part !== 'simulator')
    .map(([part, value]) => `${partTitles[part]} ${number(value, 1)} ms`);
  const counts = store
    ? `; the store: ${number(store.commands)} commands, ${number(store.scripts, 1)} scripts, ${kilobytes(store.bytesIn)} KB in, ${kilobytes(store.bytesOut)} KB out`
    : '';
  return `An idle second: CPU ${parts.join(', ')} (not subtracted)${counts} (subtracted). `;
}

const kilobytes = (bytes: number): string => number(bytes / 1000, 1);

type RowColumn = Column<RowResult>;

const nameColumns: readonly RowColumn[] = [
  ['provider, ms', ({ latencyMs }) => number(latencyMs)],
  ['connections', ({ connections }) => number(connections)],
];

const bySide = (cell: (side: RowResult['bySide'][Side]) => string, row: RowResult): string =>
  sides.map((side) => cell(row.bySide[side])).join(' / ');

const ratioColumn = (name: RatioName): RowColumn => ['ratio', ({ ratios }) => ratioCell(ratios[name])];

const speedColumns: readonly RowColumn[] = [
  ...nameColumns,
  ['requests/s', (row) => bySide(({ perSecond }) => perSecondCell(perSecond), row)],
  ratioColumn('perSecond'),
  ['p50, ms', (row) => bySide(({ p50Ms }) => ms(p50Ms), row)],
  ratioColumn('p50Ms'),
  ['p99, ms', (row) => bySide(({ p99Ms }) => ms(p99Ms), row)],
  ratioColumn('p99Ms'),
  ['errors', (row) => bySide(({ errors }) => number(errors), row)],
];

const cpuOf = ({ bySide: all }: RowResult, side: Side, part: Part): string =>
  number(all[side].cpuMs[part] ?? Number.NaN, 3);

const cpuColumns: readonly RowColumn[] = [
  ...nameColumns,
  ...(['api', 'worker', 'store'] as const).map(
    (part): RowColumn => [partTitles[part], (row) => cpuOf(row, 'quillgate', part)],
  ),
  ['sum', ({ bySide: { quillgate } }) => number(quillgate.productCpuMs ?? Number.NaN, 3)],
  ['Portkey', (row) => cpuOf(row, 'portkey', 'peer')],
  ['ratio of the sum', ({ ratios }) => ratioCell(ratios.productCpuMs)],
  ...(['simulator', 'load'] as const).map(
    (part): RowColumn => [partTitles[part], (row) => sides.map((side) => cpuOf(row, side, part)).join(' / ')],
  ),
];

const peakOf = ({ bySide: all }: RowResult, side: Side, part: Part): string =>
  number((all[side].peakBytes[part] ?? Number.NaN) / 1e6);

const countColumn = (title: string, cell: (store: NonNullable<StoreCells>) => string): RowColumn => [
  title,
  ({ bySide: { quillgate } }) => (quillgate.store ? cell(quillgate.store) : '–'),
];

type StoreCells = RowResult['bySide'][Side]['store'];

const costColumns: readonly RowColumn[] = [
  ...nameColumns,
  ...(['api', 'worker', 'store'] as const).map(
    (part): RowColumn => [`${partTitles[part]}, MB`, (row) => peakOf(row, 'quillgate', part)],
  ),
  ['Portkey, MB', (row) => peakOf(row, 'portkey', 'peer')],
  countColumn('commands', ({ commands }) => number(commands, 1)),
  countColumn('scripts', ({ scripts }) => number(scripts, 2)),
  countColumn('bytes in', ({ bytesIn }) => number(bytesIn)),
  countColumn('bytes out', ({ bytesOut }) => number(bytesOut)),
];
