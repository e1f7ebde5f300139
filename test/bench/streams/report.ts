import { type AimResult, notMeasured, verdict } from '../aims.js';
import { partsOf } from '../peer/figures.js';
import { peerTitle } from '../peer/portkey.js';
import { storeTitles } from '../store.js';
import { type Column, ms, number, partTitles, percent, table } from '../table.js';
import type { Part } from '../usage.js';
import { baselineOf, type StreamFigures, type StreamRun } from './results.js';
import { windowMs } from './series.js';

/** One run in one line, to watch the benchmark go. */
export function describeStreamRun({ store, target, streams, load }: StreamRun): string {
  const { first, delay } = load;
  return (
    `${target} (${store}), ${streams} streams: first delta p50 ${ms(first.p50)} ms, p99 ${ms(first.p99)} ms; ` +
    `delay p50 ${ms(delay.p50)} ms, p99 ${ms(delay.p99)} ms; ${load.whole} of ${load.streams} whole${flawsOf(load.flaws)}\n`
  );
}

/** All of it as Markdown. */
export function describeStreams(all: readonly StreamFigures[]): string {
  const rows = all.map((one) => ({ one, baseline: baselineOf(all, one) }));
  return [
    'Streams: time to the first delta, what of it is added to the simulator’s own, and how long after the provider sent them the other deltas ',
    'arrive; late is what arrives later than one window.\n\n',
    table(timeColumns, rows),
    'Processor time per delta of the provider in microseconds, and resident memory at its peak.\n\n',
    table(usageColumns, rows),
  ].join('');
}

interface Row {
  readonly one: StreamFigures;
  readonly baseline: StreamFigures | undefined;
}

const titleOf = ({ target, store }: StreamFigures): string => {
  if (target === 'simulator') return `simulator alone (${store})`;
  return target === 'portkey' ? `${peerTitle} (${store})` : storeTitles[store];
};

const nameColumns: readonly Column<Row>[] = [
  ['through', ({ one }) => titleOf(one)],
  ['streams', ({ one }) => number(one.streams)],
];

const added = ({ one, baseline }: Row, which: 'p50' | 'p99'): number =>
  one.target === 'simulator' ? Number.NaN : one.firstMs[which] - (baseline?.firstMs[which] ?? Number.NaN);

const timeColumns: readonly Column<Row>[] = [
  ...nameColumns,
  [
    'first delta p50 / p99, ms',
    ({ one: { firstMs } }) => `${ms(firstMs.p50)} / ${ms(firstMs.p99)} (${number(firstMs.count)})`,
  ],
  ['added p50 / p99, ms', (row) => `${ms(added(row, 'p50'))} / ${ms(added(row, 'p99'))}`],
  ['later deltas p50 / p99, ms', ({ one: { delayMs } }) => `${ms(delayMs.p50)} / ${ms(delayMs.p99)}`],
  ['late', ({ one: { lateShare, store } }) => `${number(lateShare * 100, 2)} % over ${windowMs[store]} ms`],
  ['deltas/s', ({ one }) => number(one.deltas / one.seconds)],
  ['deltas per event', ({ one }) => number(one.deltas / one.events, 2)],
  ['whole', ({ one }) => `${number(one.whole)} of ${number(one.all)}${flawsOf(one.flaws)}`],
];

const partCell = ({ cpuUs, peakBytes }: StreamFigures, part: Part): string =>
  cpuUs[part] === undefined
    ? '–'
    : `${number(cpuUs[part], 1)} µs, ${number((peakBytes[part] ?? 0) / 1e6)} MB`;

const usageColumns: readonly Column<Row>[] = [
  ...nameColumns,
  ...(['api', 'worker', 'store', 'peer'] as const).map(
    (part): Column<Row> => [
      partTitles[part],
      ({ one }) => (partsOf[one.target].includes(part) ? partCell(one, part) : ''),
    ],
  ),
  ['sum', ({ one }) => `${number(cpuOf(one), 1)} µs`],
  ...(['simulator', 'load'] as const).map(
    (part): Column<Row> => [partTitles[part], ({ one }) => partCell(one, part)],
  ),
  ['machine busy', ({ one }) => percent(one.machineBusy)],
  ['with anything else', ({ one }) => percent(one.othersBusy)],
];

const cpuOf = ({ target, cpuUs }: StreamFigures): number =>
  partsOf[target].reduce((sum, part) => sum + (cpuUs[part] ?? Number.NaN), 0);

function flawsOf(flaws: Readonly<Record<string, number>>): string {
  const some = Object.entries(flaws).map(([flaw, count]) => `${count} × ${flaw}`);
  return some.length > 0 ? ` (${some.join(', ')})` : '';
}

/** Compares with what the project wants to reach. */
export function compareStreamsWithAims(all: readonly StreamFigures[]): AimResult[] {
  return [...[1, 100].map((streams) => besidePeer(all, streams)), nothingLost(all)];
}

function besidePeer(all: readonly StreamFigures[], streams: number): AimResult {
  const aim = `Redis: what is added to the first delta at most twice Portkey's at ${streams} streams, p50`;
  const addedBy = (target: StreamFigures['target']) => {
    const one = all.find(
      (each) => each.target === target && each.store === 'redis' && each.streams === streams,
    );
    return one === undefined ? Number.NaN : added({ one, baseline: baselineOf(all, one) }, 'p50');
  };
  const [ours, theirs] = [addedBy('quillgate'), addedBy('portkey')];
  if (!Number.isFinite(ours + theirs)) return notMeasured(aim);
  return { aim, verdict: verdict(ours <= 2 * theirs), numbers: `${ms(ours)} ms, Portkey ${ms(theirs)} ms` };
}

function nothingLost(all: readonly StreamFigures[]): AimResult {
  const aim = 'no stream without a delta';
  const ours = all.filter(({ target }) => target === 'quillgate');
  if (ours.length === 0) return notMeasured(aim);
  const sum = (value: (one: StreamFigures) => number) => ours.reduce((total, one) => total + value(one), 0);
  const [whole, streams] = [sum((one) => one.whole), sum((one) => one.all)];
  const most = Math.max(...ours.map((one) => one.streams));
  return {
    aim,
    verdict: verdict(whole === streams),
    numbers: `${number(whole)} of ${number(streams)} whole, up to ${most} at once`,
  };
}
