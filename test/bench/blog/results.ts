import { median } from '../interleaved/statistics.js';
import type { LoadResult } from '../load.js';
import type { Usage } from '../usage.js';
import type { Frequency, Seeded } from './seed.js';

/** Pages for people. */
export const pageTasks = [
  'post page',
  'index page',
  'far index page',
  'newer index page',
  'tag page',
  'far tag page',
] as const;
export type PageTask = (typeof pageTasks)[number];

/** What is asked of the blog in one run. */
export type Task =
  | 'get'
  | 'first page'
  | 'far page'
  | `search ${Frequency}`
  | 'tag'
  | 'author'
  | 'feed unchanged'
  | PageTask
  | 'patch'
  | 'create';

/** One run that was done. */
export interface BlogRun {
  readonly task: Task;
  readonly connections: number;
  readonly load: LoadResult;
  readonly usage: Usage;
}

/** How the database answers one kind of query. */
export interface Explanation {
  readonly query: string;
  /** The statement as it was sent to the database. */
  readonly statement: string;
  /** The answer of EXPLAIN (ANALYZE, COSTS OFF). */
  readonly plan: string;
}

/** Everything that came of the blog's part. */
export interface BlogResults {
  readonly posts: Pick<Seeded, 'averageContent' | 'databaseBytes' | 'postsPerWord' | 'seconds'>;
  readonly runs: readonly BlogRun[];
  readonly explanations: readonly Explanation[];
}

/** Answers per second of one run. */
export const rateOf = ({ load }: BlogRun): number => load.answers / load.seconds;

/** The median rate of the task's rounds; undefined when there was none. */
export function medianRate(runs: readonly BlogRun[], task: Task): number | undefined {
  const rates = runs.filter((run) => run.task === task).map(rateOf);
  return rates.length > 0 ? median(rates) : undefined;
}
