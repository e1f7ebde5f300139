import type { Conditions } from './conditions.js';
import type { LoadErrors } from './load.js';
import type { StoreName } from './options.js';
import { overSimulatorMs, type Results, type Series } from './results.js';
import type { Run } from './runs.js';
import { storeTitles } from './store.js';
import { type Part, parts } from './usage.js';

/** The conditions as a Markdown list. */
export const describeConditionList = (conditions: Conditions): string =>
  conditions.map(([name, value]) => `- ${name}: ${value}\n`).join('');

/** One run in one line, to watch the benchmark go. */
export function describeRun(store: StoreName, run: Run): string {
  const target = run.target === 'chat' ? storeTitles[store] : 'simulator alone';
  const connections = `${number(run.connections)} connection${run.connections === 1 ? '' : 's'}`;
  const { p50Ms, p99Ms, errors } = run.load;
  return (
    `${target}, provider ${run.latencyMs} ms, ${connections}: ${perSecond(run)} requests/s, ` +
    `p50 ${ms(p50Ms)} ms, p99 ${ms(p99Ms)} ms, ${describeErrors(errors)}\n`
  );
}

/** All of it as Markdown that can be pasted into a page. */
export function describeResults({ series, skipped, aims }: Results): string {
  const rows = series.flatMap((one) => one.runs.map((run) => ({ series: one, run })));
  return [
    table(speedColumns, rows),
    'Each process: CPU seconds in the measured time · CPU ms per request · resident MB at the peak / at the end.\n\n',
    table(usageColumns, rows),
    ...skipped.map((line) => `- did not run: ${line}\n`),
    '\nAims:\n\n',
    ...aims.map(({ aim, verdict, numbers }) => `- ${verdict}: ${aim} (${numbers})\n`),
  ].join('');
}

interface Row {
  readonly series: Series;
  readonly run: Run;
}

type Column = readonly [title: string, cell: (row: Row) => string];

const nameColumns: readonly Column[] = [
  [
    'store',
    ({ series, run }) =>
      run.target === 'chat' ? storeTitles[series.store] : `simulator alone (${series.store})`,
  ],
  ['provider, ms', ({ run }) => number(run.latencyMs)],
  ['connections', ({ run }) => number(run.connections)],
];

const speedColumns: readonly Column[] = [
  ...nameColumns,
  ['requests/s', ({ run }) => perSecond(run)],
  ['p50, ms', ({ run }) => ms(run.load.p50Ms)],
  ['over the simulator, ms', ({ series, run }) => ms(overSimulatorMs(series, run), '')],
  ['p99, ms', ({ run }) => ms(run.load.p99Ms)],
  ['errors', ({ run }) => describeErrors(run.load.errors)],
  ['at the provider at once', ({ run }) => number(run.mostAtProvider)],
];

const partTitles: Readonly<Record<Part, string>> = {
  api: 'API',
  worker: 'worker',
  store: 'store',
  simulator: 'simulator',
  load: 'load generator',
};

/** What a request costs an operator; the rest only plays the client and the provider. */
const productParts: readonly Part[] = ['api', 'worker', 'store'];

const usageColumns: readonly Column[] = [
  ...nameColumns,
  ...parts.map((part): Column => [partTitles[part], ({ run }) => usageCell(run, part)]),
  ['API + worker + store, CPU ms per request', ({ run }) => productCell(run)],
  ['machine busy', ({ run }) => percent(run.usage.machineBusy)],
  ['with anything else', ({ run }) => percent(run.usage.othersBusy)],
];

function usageCell(run: Run, part: Part): string {
  if (run.target === 'simulator' && productParts.includes(part)) return '';
  const usage = run.usage.parts[part];
  if (usage === undefined) return 'not measured';
  const memory = `${number(usage.peakBytes / 1e6)} / ${number(usage.endBytes / 1e6)}`;
  return `${number(usage.cpuSeconds, 2)} · ${perRequest(run, usage.cpuSeconds)} · ${memory}`;
}

function productCell(run: Run): string {
  if (run.target === 'simulator') return '';
  const seconds = productParts.map((part) => run.usage.parts[part]?.cpuSeconds ?? Number.NaN);
  return perRequest(
    run,
    seconds.reduce((sum, one) => sum + one),
  );
}

function describeErrors(errors: LoadErrors): string {
  const counts: [number, string][] = [
    [errors.non2xx, 'not 2xx'],
    [errors.timeouts, 'timeouts'],
    [errors.socket, 'socket errors'],
    [errors.unanswered, 'unanswered'],
  ];
  const some = counts.filter(([count]) => count > 0).map(([count, kind]) => `${number(count)} ${kind}`);
  return some.join(', ') || '0 errors';
}

function table(columns: readonly Column[], rows: readonly Row[]): string {
  const line = (cells: string[]) => `| ${cells.join(' | ')} |\n`;
  const head = [columns.map(([title]) => title), columns.map(() => '---')];
  const body = rows.map((row) => columns.map(([, cell]) => cell(row)));
  return `${[...head, ...body].map(line).join('')}\n`;
}

function perSecond({ load }: Run): string {
  const rate = load.answers / load.seconds;
  return number(rate, rate < 100 ? 1 : 0);
}

const perRequest = ({ load }: Run, cpuSeconds: number): string =>
  number((cpuSeconds * 1000) / load.answers, 3);

const ms = (value: number | undefined, absent = '–'): string =>
  value === undefined ? absent : number(value, 2);

const percent = (share: number): string => `${number(share * 100)} %`;

/** Not a number: there was nothing to count. */
function number(value: number, digits = 0): string {
  if (!Number.isFinite(value)) return '–';
  return value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}
