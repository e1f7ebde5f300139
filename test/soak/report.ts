import type { AimResult } from '../bench/aims.js';
import type { Conditions } from '../bench/conditions.js';
import { type Column, number, table } from '../bench/table.js';
import { meanBusyMs, mix, providerTimeoutMs } from './mix.js';
import type { Options } from './options.js';
import { type ProcessName, processNames, type Sample } from './samples.js';
import { describeGauges, growth, type Soak } from './verdicts.js';

/** Under which load the numbers came about. */
export function describeSetup({ minutes, concurrency }: Options, perSecond: number): Conditions {
  const kinds = mix.map(
    ({ model, perMille, leaves }) =>
      `${number(perMille / 10, 1)} % ${model}${leaves ? ' whose caller leaves' : ''}`,
  );
  return [
    [
      'processes',
      `one API, two workers with four pools of ${concurrency} each and ${providerTimeoutMs} ms for a call, a simulator; log level info to files`,
    ],
    ['mix', `the four providers in turns; ${kinds.join(', ')}; ${number(meanBusyMs)} ms on average`],
    [
      'load',
      `${minutes} minutes of ${number(perSecond, 1)} requests/s, open loop: half of 8 pools × ${concurrency} / ${number(meanBusyMs)} ms`,
    ],
    ['deaths', 'the second worker is killed with SIGKILL now and then, and is away for 5 s and its start'],
  ];
}

/** One sample in one line, to watch the soak go. */
export function describeSample({ minute, memory, redisBytes, gauges }: Sample): string {
  const sizes = processNames.map((name) => `${name} ${megabytes(memory[name])}`).join(', ');
  const redis = redisBytes === undefined ? '' : `, Redis data ${megabytes(redisBytes, 1)}`;
  return `${number(minute, 1)} min, MB: ${sizes}${redis}; ${describeGauges(gauges)}\n`;
}

/** All of it as Markdown that can be pasted into a page. */
export function describeSoak(soak: Soak, aims: readonly AimResult[]): string {
  return [
    `\n${table(columns(soak), rowsOf(soak))}`,
    `- answers: ${soak.books.describe()}\n`,
    `- the second worker died ${soak.deaths} times\n`,
    '\nAims:\n\n',
    ...aims.map(({ aim, verdict, numbers }) => `- ${verdict}: ${aim} (${numbers})\n`),
  ].join('');
}

interface Row {
  readonly name: ProcessName | 'Redis data';
  readonly pick: (sample: Sample) => number | undefined;
}

function rowsOf({ samples }: Soak): Row[] {
  const rows: Row[] = processNames.map((name) => ({ name, pick: ({ memory }) => memory[name] }));
  const redis: Row = { name: 'Redis data', pick: ({ redisBytes }) => redisBytes };
  return [...rows, redis].filter(({ pick }) => samples.some((sample) => pick(sample)));
}

function columns(soak: Soak): Column<Row>[] {
  const values = ({ pick }: Row) => soak.samples.map((sample) => pick(sample) ?? 0);
  return [
    ['memory, MB', ({ name }) => name],
    ['first', (row) => megabytes(values(row)[0], 1)],
    ['peak', (row) => megabytes(Math.max(...values(row)), 1)],
    ['last', (row) => megabytes(values(row).at(-1), 1)],
    // Its lives are too short for a slope, and together they have none.
    ['MB/min', (row) => (row.name === 'worker 2' ? 'dies' : number(growth(soak, row.pick), 3))],
  ];
}

const megabytes = (bytes: number | undefined, digits = 0): string =>
  number((bytes ?? Number.NaN) / 1e6, digits);
