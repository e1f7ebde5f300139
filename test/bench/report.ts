import { describeApiProcesses } from './api-processes/series.js';
import { describeBeside } from './blog/beside-express.js';
import { describeBlog } from './blog/report.js';
import type { Conditions } from './conditions.js';
import type { StoreName } from './options.js';
import { peerTitle } from './peer/portkey.js';
import { overSimulatorMs, type Results, type Series } from './results.js';
import type { Run } from './runs.js';
import { storeTitles } from './store.js';
import { describeStreams } from './streams/report.js';
import {
  type Column,
  describeErrors,
  describeLoad,
  ms,
  number,
  partTitles,
  percent,
  perRequest,
  perSecond,
  table,
  usageCell,
  usageLegend,
} from './table.js';
import { type Part, parts, productParts } from './usage.js';

/** The conditions as a Markdown list. */
export const describeConditionList = (conditions: Conditions): string =>
  conditions.map(([name, value]) => `- ${name}: ${value}\n`).join('');

/** One chat run in one line, to watch the benchmark go. */
export function describeRun(store: StoreName, { target, latencyMs, connections, load }: Run): string {
  return describeLoad(`${titleOf(target, store)}, provider ${latencyMs} ms`, connections, load);
}

/** Says in a report what was asked. */
export function titleOf(target: Run['target'], store: StoreName): string {
  if (target === 'portkey') return peerTitle;
  if (target === 'simulator') return 'simulator alone';
  return target === 'chat' ? storeTitles[store] : `${storeTitles[store]}, ${target}`;
}

/** All of it as Markdown that can be pasted into a page. */
export function describeResults({
  series,
  blog,
  blogPeer,
  streams,
  apiProcesses,
  skipped,
  aims,
}: Results): string {
  return [
    ...(series.length > 0 ? [describeChat(series)] : []),
    ...(blog ? [describeBlog(blog)] : []),
    ...(blogPeer ? [describeBeside(blogPeer)] : []),
    ...(streams.length > 0 ? [describeStreams(streams)] : []),
    ...(apiProcesses.length > 0 ? [describeApiProcesses(apiProcesses)] : []),
    ...skipped.map((line) => `- did not run: ${line}\n`),
    '\nAims:\n\n',
    ...aims.map(({ aim, verdict, numbers }) => `- ${verdict}: ${aim} (${numbers})\n`),
  ].join('');
}

function describeChat(series: readonly Series[]): string {
  const rows = series.flatMap((one) => one.runs.map((run) => ({ series: one, run })));
  return [table(speedColumns, rows), usageLegend, table(usageColumns, rows)].join('');
}

interface Row {
  readonly series: Series;
  readonly run: Run;
}

const nameColumns: readonly Column<Row>[] = [
  [
    'store',
    ({ series, run }) =>
      titleOf(run.target, series.store) + (run.target === 'simulator' ? ` (${series.store})` : ''),
  ],
  ['provider, ms', ({ run }) => number(run.latencyMs)],
  ['connections', ({ run }) => number(run.connections)],
];

const speedColumns: readonly Column<Row>[] = [
  ...nameColumns,
  ['requests/s', ({ run }) => perSecond(run.load)],
  ['p50, ms', ({ run }) => ms(run.load.p50Ms)],
  ['over the simulator, ms', ({ series, run }) => ms(overSimulatorMs(series, run), '')],
  ['p99, ms', ({ run }) => ms(run.load.p99Ms)],
  ['errors', ({ run }) => describeErrors(run.load.errors)],
  ['at the provider at once', ({ run }) => number(run.maxAtProvider)],
];

const usageColumns: readonly Column<Row>[] = [
  ...nameColumns,
  ...parts
    .filter((part) => part !== 'peer')
    .map((part): Column<Row> => [partTitles[part], ({ run }) => partCell(run, part)]),
  ['API + worker + store, CPU ms per request', ({ run }) => productCell(run)],
  ['machine busy', ({ run }) => percent(run.usage.machineBusy)],
  ['with anything else', ({ run }) => percent(run.usage.othersBusy)],
];

function partCell(run: Run, part: Part): string {
  if (run.target === 'simulator' && productParts.includes(part)) return '';
  return usageCell(run.load, run.usage.parts[part]);
}

function productCell(run: Run): string {
  if (run.target === 'simulator') return '';
  const seconds = productParts.map((part) => run.usage.parts[part]?.cpuSeconds ?? Number.NaN);
  return perRequest(
    run.load,
    seconds.reduce((sum, one) => sum + one),
  );
}
