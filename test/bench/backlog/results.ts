import { type AimResult, verdict } from '../aims.js';
import { median, type Ratio, ratioOf } from '../interleaved/statistics.js';
import { type Column, number, ratioCell, table } from '../table.js';

/** A queue where nothing else waits, and one with a backlog. */
export const sides = ['empty', 'backlog'] as const;

export type Side = (typeof sides)[number];

/** How jobs wait: users with much outstanding have theirs further back. */
export type Waiting = 'without priority' | 'with priority';

export interface Measured {
  /** Jobs added or taken. */
  readonly perSecond: number;
  /** CPU milliseconds of the store for one. */
  readonly storeCpuMs: number;
}

/** What came of adding or taking. */
export interface BacklogRow {
  readonly title: string;
  readonly perSecond: Readonly<Record<Side, number>>;
  readonly storeCpuMs: Readonly<Record<Side, number>>;
  /** How many times as long a job takes with the backlog; absent when it could not be measured. */
  readonly slowdown?: Ratio;
  /** The same of the store's CPU time. */
  readonly cpuRatio?: Ratio;
  readonly rounds: readonly Readonly<Record<Side, Measured>>[];
}

export interface BacklogResults {
  /** In the backlog. */
  readonly jobs: number;
  readonly payloadBytes: number;
  /** The store's memory for each waiting job. */
  readonly bytesPerJob: Readonly<Record<Waiting, number>>;
  readonly rows: readonly BacklogRow[];
}

export function summariseRow(title: string, rounds: BacklogRow['rounds']): BacklogRow {
  const middle = (pick: (measured: Measured) => number) => ({
    empty: median(rounds.map(({ empty }) => pick(empty))),
    backlog: median(rounds.map(({ backlog }) => pick(backlog))),
  });
  const slowdown = ratioOf(rounds.map(({ empty, backlog }) => [empty.perSecond, backlog.perSecond]));
  const cpuRatio = ratioOf(rounds.map(({ empty, backlog }) => [backlog.storeCpuMs, empty.storeCpuMs]));
  return {
    title,
    perSecond: middle(({ perSecond }) => perSecond),
    storeCpuMs: middle(({ storeCpuMs }) => storeCpuMs),
    ...(slowdown && { slowdown }),
    ...(cpuRatio && { cpuRatio }),
    rounds,
  };
}

/** One round in one line, to watch the benchmark go. */
export const describeBacklogRound = (
  title: string,
  { empty, backlog }: Readonly<Record<Side, Measured>>,
): string =>
  `${title}: ${number(empty.perSecond)} jobs/s, with the backlog ${number(backlog.perSecond)} jobs/s, ` +
  `× ${number(empty.perSecond / backlog.perSecond, 2)} as long\n`;

/** All of it as Markdown. */
export const describeBacklog = ({ jobs, payloadBytes, bytesPerJob, rows }: BacklogResults): string =>
  `A backlog of ${number(jobs)} jobs: the same on an empty queue and with the backlog, in turns. Redis' memory for each waiting job: ` +
  `${number(bytesPerJob['without priority'])} bytes without and ${number(bytesPerJob['with priority'])} bytes with a priority, of which the ` +
  `job's data are ${number(payloadBytes)}.\n\n${table(columns, rows)}`;

const columns: readonly Column<BacklogRow>[] = [
  ['', ({ title }) => title],
  ['empty, jobs/s', ({ perSecond }) => number(perSecond.empty)],
  ['backlog, jobs/s', ({ perSecond }) => number(perSecond.backlog)],
  ['times as long', ({ slowdown }) => ratioCell(slowdown)],
  [
    'CPU of Redis for one, ms',
    ({ storeCpuMs }) => `${number(storeCpuMs.empty, 3)} / ${number(storeCpuMs.backlog, 3)}`,
  ],
  ['ratio', ({ cpuRatio }) => ratioCell(cpuRatio)],
];

const mostSlowdown = 1.2;

/** Compares with what the project wants to reach. */
export function compareBacklogWithAims({ jobs, rows }: BacklogResults): AimResult[] {
  return rows.map(({ title, slowdown }) => ({
    aim: `Redis: a backlog of ${number(jobs)} jobs makes ${title} at most ${mostSlowdown} times as long`,
    verdict: slowdown ? verdict(slowdown.median <= mostSlowdown) : 'not measured',
    numbers: `× ${ratioCell(slowdown)}`,
  }));
}
