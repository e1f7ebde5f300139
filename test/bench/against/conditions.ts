import { execFileSync } from 'node:child_process';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { seededPosts } from '../blog/seed.js';
import { type Conditions, describeMachine, type MissingStore } from '../conditions.js';
import { timeoutSeconds } from '../measure.js';
import type { Options } from '../options.js';
import { thisCheckout } from '../programs.js';
import { type StoreChoice, storeTitles } from '../store.js';
import type { Checkout } from './checkout.js';

/** Short, because each measurement is: the connections are opened in it, and the processes are warm. */
export const warmUpSeconds = 0.5;

interface Facts {
  options: Options;
  baseline: Checkout;
  stores: readonly (StoreChoice | MissingStore)[];
}

/** Under which conditions two checkouts were compared. */
export function describeComparisonConditions({ options, baseline, stores }: Facts): Conditions {
  const facts = describeMachine();
  const commit = facts.find(([name]) => name === 'commit')?.[1];
  return [
    ...facts.filter(([name]) => name !== 'commit' && name !== 'Node'),
    ['baseline', `${baseline.commit} on Node ${nodeOf(baseline.root)}, packages: ${baseline.packages}`],
    ['candidate', `${commit ?? 'unknown'} on Node ${nodeOf(thisCheckout)}`],
    ...stores.map((store): [string, string] => [
      storeTitles[store.name],
      'missing' in store ? `does not run: ${store.missing}` : `${store.servedBy}; one for each side`,
    ]),
    ...options.subjects
      .filter((subject) => subject === 'blog')
      .map((): [string, string] => [
        'blog',
        `an embedded PostgreSQL for each side, ${seededPosts.toLocaleString('en-US')} posts in it`,
      ]),
    ['load and provider', `both sides have the candidate's load generator, simulator and stores`],
    [
      'runs',
      `rounds: ${options.rounds}, in each both sides of every row one after the other, the order turning from round to round; ` +
        `${warmUpSeconds} s of warm-up, then ${options.seconds} s measured; no answer in ${timeoutSeconds} s is an error`,
    ],
    ['callers', 'as the rows say, each sends its next request at the answer to the last'],
  ];
}

/** Over the last minute, five and fifteen. */
export const loadAverage = (): string =>
  loadavg()
    .map((value) => value.toFixed(2))
    .join(', ');

/** The Node that the checkout's launcher takes. */
function nodeOf(root: string): string {
  const environment = { ...process.env, PATH: `${join(root, 'node_modules', '.bin')}:${process.env.PATH}` };
  return execFileSync('node', ['--version'], { encoding: 'utf8', env: environment }).trim();
}
