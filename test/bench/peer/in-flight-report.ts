import { storeTitles } from '../store.js';
import { type Column, ms, number, perSecondCell, table } from '../table.js';
import { partsOf } from './figures.js';
import type { InFlightResults, InFlightRow } from './in-flight.js';
import { type Side, sides } from './sides.js';

/** The requests in flight on one store as Markdown. */
export function describeInFlight({ store, rows, idleBytes }: InFlightResults): string {
  const idle = (side: Side) => partsOf[side].reduce((sum, part) => sum + (idleBytes[part] ?? Number.NaN), 0);
  return [
    `Requests in flight, ${storeTitles[store]}: ours / Portkey / the simulator alone, medians over the rounds. Memory: how much more than ` +
      `warmed and idle (ours ${number(idle('quillgate') / 1e6)} MB, Portkey ${number(idle('portkey') / 1e6)} MB) for each request in flight.\n\n`,
    table(columns, rows),
  ].join('');
}

const bySide = (cell: (side: Side) => string): string => sides.map(cell).join(' / ');

const columns: readonly Column<InFlightRow>[] = [
  ['in flight', ({ connections }) => number(connections)],
  ['provider, ms', ({ latencyMs }) => number(latencyMs)],
  ['requests/s', (row) => bySide((side) => perSecondCell(row.bySide[side].perSecond))],
  [
    'of the ideal',
    (row) => bySide((side) => `${number((100 * row.bySide[side].perSecond) / row.idealPerSecond, 1)} %`),
  ],
  ['p99, ms', (row) => bySide((side) => ms(row.bySide[side].p99Ms))],
  ['errors', (row) => bySide((side) => number(row.bySide[side].errors))],
  [
    'at the provider at once',
    ({ rounds }) => bySide((side) => number(Math.max(...rounds.map((round) => round[side].maxAtProvider)))),
  ],
  ['KB for each', ({ growthBytes }) => bySide((side) => number((growthBytes[side] ?? Number.NaN) / 1000, 1))],
  ['CPU ms per request', (row) => bySide((side) => number(row.bySide[side].productCpuMs ?? Number.NaN, 3))],
];
