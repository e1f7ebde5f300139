import { execFileSync } from 'node:child_process';
import { availableParallelism, cpus, loadavg, release, totalmem } from 'node:os';
import { load } from './api-processes/series.js';
import { seededPosts } from './blog/seed.js';
import { concurrency } from './gateway.js';
import { timeoutSeconds, warmUpSeconds } from './measure.js';
import type { Options, Subject } from './options.js';
import { peerTitle } from './peer/portkey.js';
import { processTableSource } from './process-table.js';
import type { RunPlan } from './runs.js';
import { type StoreChoice, storeTitles } from './store.js';
import { gapMs } from './streams/series.js';

/** Under which conditions the numbers came about: name and value, for people. */
export type Conditions = readonly (readonly [name: string, value: string])[];

/** A store that cannot run here, and why. */
export interface MissingStore {
  readonly name: StoreChoice['name'];
  readonly missing: string;
}

export function describeConditions(
  options: Options,
  stores: readonly (StoreChoice | MissingStore)[],
): Conditions {
  return describeAll(options, stores, [
    [
      'runs',
      `${warmUpSeconds} s of warm-up, then ${options.seconds} s measured; no answer in ${timeoutSeconds} s is an error`,
    ],
  ]);
}

/** Under which conditions our gateway was measured beside another. */
export function describePeerConditions(
  options: Options,
  stores: readonly (StoreChoice | MissingStore)[],
): Conditions {
  return describeAll(options, stores, [
    ['other gateway', `${peerTitle} from npm, one process (--headless), without a queue`],
    [
      'runs',
      `rounds: ${options.rounds}, in each every row is measured with ours, the other gateway and the simulator alone, one straight after another, the ` +
        `order turning from round to round; ${options.seconds} s measured, longer where an answer takes longer; no answer in ${timeoutSeconds} s is an error`,
    ],
  ]);
}

const describeAll = (
  options: Options,
  stores: readonly (StoreChoice | MissingStore)[],
  runs: Conditions,
): Conditions => [
  ...describeMachine(),
  ...describeStores(stores),
  ...options.subjects.map((subject): [string, string] => [subject, processes[subject]]),
  ...describeLoadGenerator(),
  ...runs,
  ...describeSharing(),
];

const describeStores = (stores: readonly (StoreChoice | MissingStore)[]): Conditions =>
  stores.map((store) => [
    storeTitles[store.name],
    'missing' in store ? `does not run: ${store.missing}` : store.servedBy,
  ]);

const describeLoadGenerator = (): Conditions => [
  [
    'load',
    'but for streams, autocannon in a process of its own; each connection sends its next request at the answer to the last',
  ],
];

const describeSharing = (): Conditions => [
  ['open files', `limit ${openFilesLimit()}`],
  ['CPU and memory', `from ${processTableSource}; peak of a look every half second`],
  ['shared', 'everything runs on this one machine over loopback, the load generator and the simulator too'],
];

/** When and on what it ran, and which commit of ours. */
export function describeMachine(): Conditions {
  const gibibytes = (totalmem() / 2 ** 30).toFixed(1);
  return [
    ['date', new Date().toISOString()],
    ['machine', `${availableParallelism()} × ${cpus()[0]?.model ?? 'unknown CPU'}, ${gibibytes} GiB memory`],
    [
      'system',
      `${process.platform} ${release()} ${process.arch}, load average before ${loadavg()[0]?.toFixed(2)}`,
    ],
    ['Node', process.version],
    ['commit', commit()],
  ];
}

/** How many files and connections one process may have open here. Node itself has raised it as far as it may. */
export function openFilesLimit(): number {
  const limit = execFileSync('sh', ['-c', 'ulimit -n'], { encoding: 'utf8' }).trim();
  return limit === 'unlimited' ? Number.POSITIVE_INFINITY : Number(limit);
}

/** Files and connections that a process needs beside those of the requests: to the store, for logs and libraries. */
const otherOpenFiles = 150;

/** The runs that the limit of open files allows; says in `skipped` what it does not. */
export function withinFileLimit<Plan extends Pick<RunPlan, 'connections'>>(
  wanted: readonly Plan[],
  skipped: string[],
): Plan[] {
  const limit = openFilesLimit();
  const fits = ({ connections }: Plan) => connections + otherOpenFiles <= limit;
  for (const count of new Set(wanted.filter((plan) => !fits(plan)).map(({ connections }) => connections))) {
    skipped.push(`${count} connections: only ${limit} open files are allowed (ulimit -n)`);
  }
  return wanted.filter(fits);
}

const processes: Readonly<Record<Subject, string>> = {
  streams:
    `as for chat; in turns with the simulator alone; 200 deltas ${gapMs} ms apart (20 with a single stream), of which each says when it was sent; a Node process reads them, each client ` +
    'beginning its next stream when the last has ended, the clients one after another; the warm-up is twice as long as a stream',
  'in-flight':
    'as for chat, with as many jobs at once as the most in flight; callers begin evenly over the time of an answer; ' +
    'memory over that of the same processes after a load of 128 connections and 10 s of rest',
  'api-processes': `as for chat on Redis, but several APIs, ${load.connections} connections in all and a provider of ${load.latencyMs} ms`,
  chat: `one API, one worker (all four pools, OPENAI_CONCURRENCY=${concurrency}), log level info to files; beside Redis an idle PostgreSQL`,
  'blog-peer':
    'as for blog, on the same database as one process of Express and postgres.js with their defaults, which checks nothing; writes last in each round',
  blog:
    `one API (DATABASE_POOL_SIZE as it is by default), log level info to a file; an embedded PostgreSQL of its own ` +
    `with fsync on, ${seededPosts.toLocaleString('en-US')} posts before the load, VACUUM (ANALYZE)`,
};

function commit(): string {
  const git = (...args: string[]) =>
    execFileSync('git', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  try {
    return `${git('rev-parse', '--short', 'HEAD')}${git('status', '--porcelain') ? ' with uncommitted changes' : ''}`;
  } catch {
    return 'unknown';
  }
}
