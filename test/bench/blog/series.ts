import { join } from 'node:path';
import { Lifecycle } from '../../../shared/runtime/lifecycle.js';
import type { Log } from '../../../shared/runtime/log.js';
import { measure } from '../measure.js';
import { explainQueries } from './explain.js';
import { type BlogResults, type BlogRun, pageTasks, type Task } from './results.js';
import { type BlogService, openBlog } from './service.js';
import { findOut, trafficOf } from './traffic.js';

interface SeriesDeps {
  seconds: number;
  /** Folder for logs and the database. */
  dir: string;
  outer: Lifecycle;
  log: Log;
  onSeeded(posts: BlogService['seeded']): void;
  onRun(run: BlogRun): void;
}

interface RunPlan {
  readonly task: Task;
  readonly connections: number;
  readonly seconds: number;
  readonly warmUpSeconds?: number;
}

/** Callers at once, where as much as possible is to be carried. */
const manyConnections = 32;
/** Callers at once, where it is asked how long an answer takes. */
const fewConnections = 2;

/** The machine drifts, so the two pages take turns and the medians of their rounds are compared. */
const pageRounds = 5;
const pageRoundSeconds = 3;

/** Starts a blog full of posts, does the runs, writes last, and stops everything again. */
export async function runBlogSeries({
  seconds,
  dir,
  outer,
  log,
  onSeeded,
  onRun,
}: SeriesDeps): Promise<BlogResults> {
  const lifecycle = outer.opened('blog', new Lifecycle(log), (open) => open.close());
  const blog = await openBlog(lifecycle, dir);
  onSeeded(blog.seeded);
  const found = await findOut(blog, lifecycle.stopping);
  const doRun = async ({ task, connections, ...lengths }: RunPlan): Promise<BlogRun> => {
    const order = { traffic: trafficOf(task, blog, found), connections, ...lengths };
    const work = measure(order, { pids: blog.pids, signal: lifecycle.stopping });
    return { task, connections, ...(await Promise.race([work, blog.failed])) };
  };
  // Once, unmeasured: code that Node compiles late must not count against the first runs.
  for (const task of ['get', 'first page'] as const)
    await doRun({ task, connections: manyConnections, seconds: 2 });
  const explanations = await explainQueries(blog.databaseUrl, blog.seeded);
  const runs: BlogRun[] = [];
  for (const plan of planRuns(seconds)) {
    const run = await doRun(plan);
    runs.push(run);
    onRun(run);
  }
  await lifecycle.close();
  const { averageContent, databaseBytes, postsPerWord, seconds: seedSeconds } = blog.seeded;
  const posts = { averageContent, databaseBytes, postsPerWord, seconds: seedSeconds };
  return { posts, runs, explanations };
}

function planRuns(seconds: number): RunPlan[] {
  const run = (task: Task): RunPlan => ({ task, connections: connectionsOf(task), seconds });
  const page = (task: Task): RunPlan => ({ ...run(task), seconds: pageRoundSeconds, warmUpSeconds: 1 });
  return [
    run('get'),
    ...Array.from({ length: pageRounds }, () => [page('first page'), page('far page')]).flat(),
    run('search rare'),
    run('search medium'),
    run('search common'),
    run('tag'),
    run('author'),
    ...pageTasks.map(run),
    run('feed unchanged'),
    run('patch'),
    run('create'),
  ];
}

/** How many callers a task has at once. */
export const connectionsOf = (task: Task): number =>
  fewCallers.includes(task) ? fewConnections : manyConnections;

const fewCallers: readonly Task[] = [
  'search rare',
  'search medium',
  'search common',
  'tag',
  'author',
  ...pageTasks,
];

/** Where the database of the series lies, below the benchmark's folder. */
export const blogFolder = (dir: string): string => join(dir, 'blog');
