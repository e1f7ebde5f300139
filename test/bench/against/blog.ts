import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Lifecycle } from '../../../shared/runtime/lifecycle.js';
import { taskTitles } from '../blog/report.js';
import type { Task } from '../blog/results.js';
import { connectionsOf } from '../blog/series.js';
import { type BlogService, openBlog } from '../blog/service.js';
import { type Found, findOut, trafficOf } from '../blog/traffic.js';
import type { Row } from '../interleaved/interleave.js';
import { measure } from '../measure.js';
import { whyNotAnswered } from '../requests.js';
import type { Target, Traffic } from '../traffic.js';
import { type Compared, type ComparisonDeps, compareRows, figuresOf } from './comparison.js';
import type { Measured, Side } from './statistics.js';

const reads: readonly Task[] = [
  'get',
  'first page',
  'far page',
  'search rare',
  'search medium',
  'search common',
  'tag',
  'author',
  'feed unchanged',
];

const writes: readonly Task[] = ['patch', 'create'];

const heatingSeconds = 2;

/** One side's API with its posts. */
interface RunningSide {
  readonly blog: BlogService;
  readonly found: Found;
}

/** Compares the blog: two APIs, each on a PostgreSQL of its own with the same posts. All reads come before the first write. */
export async function compareBlog(deps: ComparisonDeps): Promise<Compared> {
  const { outer, log } = deps;
  const lifecycle = outer.opened('blog', new Lifecycle(log), (open) => open.close());
  const [baseline, candidate] = await Promise.all([
    openSide('baseline', deps, lifecycle),
    openSide('candidate', deps, lifecycle),
  ]);
  const running = { baseline, candidate };
  const run = async (side: Side, task: Task, seconds: number) => {
    const { blog } = running[side];
    const traffic = await trafficNow(task, running[side], lifecycle.stopping);
    const order = { traffic, connections: connectionsOf(task), seconds, warmUpSeconds: deps.warmUpSeconds };
    const failed = [running.baseline.blog.failed, running.candidate.blog.failed];
    return Promise.race([measure(order, { pids: blog.pids, signal: lifecycle.stopping }), ...failed]);
  };
  // Unmeasured: code that Node compiles late must not count against the first rounds.
  for (const task of ['get', 'first page'] as const) {
    await run('baseline', task, heatingSeconds);
    await run('candidate', task, heatingSeconds);
  }
  const rowOf = (task: Task): Row<Side, Measured> => ({
    title: `${taskTitles[task]}, callers ${connectionsOf(task)}`,
    whyNot: async (side) =>
      whyNotAnswered(await trafficNow(task, running[side], lifecycle.stopping), lifecycle.stopping),
    measure: async (side) => figuresOf(await run(side, task, deps.seconds)),
  });
  const parts: Compared[] = [];
  for (const tasks of [reads, writes]) parts.push(await compareRows(tasks.map(rowOf), deps));
  await lifecycle.close();
  return { rows: parts.flatMap(({ rows }) => rows), skipped: parts.flatMap(({ skipped }) => skipped) };
}

async function openSide(side: Side, deps: ComparisonDeps, lifecycle: Lifecycle): Promise<RunningSide> {
  const dir = join(deps.dir, side);
  mkdirSync(dir);
  const blog = await openBlog(lifecycle, dir, deps.roots[side]);
  return { blog, found: await findOut(blog, lifecycle.stopping) };
}

/** The requests of the task; those that change posts know the posts' tags as they are by now. */
async function trafficNow(task: Task, { blog, found }: RunningSide, signal: AbortSignal): Promise<Traffic> {
  const traffic = trafficOf(task, blog, found);
  return task === 'patch' ? { ...traffic, targets: await withTags(traffic, signal) } : traffic;
}

const changedPosts = 640;
const askedAtOnce = 32;

/** Some of the posts at random with their tags, as the API gives them: earlier rounds have changed them. */
async function withTags({ origin, targets }: Traffic, signal: AbortSignal): Promise<Target[]> {
  const start = Math.floor(Math.random() * Math.max(1, targets.length - changedPosts));
  const some = targets.slice(start, start + changedPosts);
  const tagged: Target[] = [];
  for (let place = 0; place < some.length; place += askedAtOnce) {
    const batch = some.slice(place, place + askedAtOnce);
    tagged.push(...(await Promise.all(batch.map(({ path }) => withTag(origin, path, signal)))));
  }
  return tagged;
}

async function withTag(origin: string, path: string, signal: AbortSignal): Promise<Target> {
  const response = await fetch(origin + path, { signal });
  await response.arrayBuffer();
  return { path, etag: response.headers.get('ETag') ?? '' };
}
