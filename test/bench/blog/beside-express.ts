import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startChild } from '../../../dev/child-program.js';
import { Lifecycle } from '../../../shared/runtime/lifecycle.js';
import {
  type Compared,
  type ComparisonDeps,
  compareRows,
  figuresOf,
  type RowResult,
} from '../against/comparison.js';
import { type Side, sides } from '../against/statistics.js';
import type { LoadOrder } from '../load.js';
import { measure } from '../measure.js';
import { whyNotAnswered } from '../requests.js';
import { type Column, number, perSecondCell, ratioCell, table } from '../table.js';
import { taskTitles } from './report.js';
import type { Task } from './results.js';
import { type BlogService, openBlog } from './service.js';
import { trafficOf } from './traffic.js';

type BesideDeps = Pick<ComparisonDeps, 'rounds' | 'seconds' | 'dir' | 'outer' | 'log'>;

const tasks: readonly Task[] = ['get', 'first page', 'create'];
const warmUpSeconds = 1;
const heatingSeconds = 2;
const graceMs = 5000;

/** Measures the blog in turns with a bare Express, which is the baseline: both on the same posts. */
export async function compareWithExpress(
  { outer, log, ...deps }: BesideDeps,
  onRound: ComparisonDeps['onRound'],
): Promise<Compared> {
  const lifecycle = outer.opened('blog-peer', new Lifecycle(log), (open) => open.close());
  const dir = join(deps.dir, 'blog-peer');
  mkdirSync(dir);
  const blog = await openBlog(lifecycle, dir);
  const bare = await openExpress(blog, { lifecycle, dir });
  const trafficFor = (side: Side, task: Task) => ({
    ...trafficOf(task, blog, { farPage: '', feedTag: '' }),
    origin: side === 'baseline' ? `http://127.0.0.1:${bare.port}` : blog.origin,
  });
  const run = async (
    side: Side,
    task: Task,
    { connections, seconds }: Pick<LoadOrder, 'connections' | 'seconds'>,
  ) => {
    const order = { traffic: trafficFor(side, task), connections, seconds, warmUpSeconds };
    const pids = side === 'baseline' ? { ...blog.pids, api: bare.pid } : blog.pids;
    return Promise.race([measure(order, { pids, signal: lifecycle.stopping }), blog.failed]);
  };
  // Unmeasured: code that Node compiles late must not count against the first rounds.
  for (const task of tasks)
    for (const side of sides) await run(side, task, { connections: 32, seconds: heatingSeconds });
  const rows = tasks.flatMap((task) =>
    [2, 32].map((connections) => ({
      title: `${taskTitles[task]}, ${connections} connections`,
      whyNot: (side: Side) => whyNotAnswered(trafficFor(side, task), lifecycle.stopping),
      measure: async (side: Side) => figuresOf(await run(side, task, { connections, seconds: deps.seconds })),
    })),
  );
  const compared = await compareRows(rows, { ...deps, onRound });
  await lifecycle.close();
  return compared;
}

async function openExpress(
  { databaseUrl }: BlogService,
  { lifecycle, dir }: { lifecycle: Lifecycle; dir: string },
) {
  const child = await startChild({
    name: 'bare Express',
    command: process.execPath,
    args: [fileURLToPath(new URL('./bare-express.js', import.meta.url))],
    environment: { PATH: process.env.PATH, NODE_ENV: 'production', DATABASE_URL: databaseUrl },
    ...{ cwd: dir, logFile: join(dir, 'bare-express.log') },
  });
  return lifecycle.opened('bare Express', child, (open) => open.stop({ graceMs }));
}

/** The comparison as Markdown. */
export const describeBeside = ({ rows }: Compared): string =>
  'The blog beside a bare Express with postgres.js on the same posts: ours by its, medians over the rounds.\n\n' +
  table(columns, rows);

const columns: readonly Column<RowResult>[] = [
  ['row', ({ title }) => title],
  ['requests/s: bare Express', ({ perSecond }) => perSecondCell(perSecond.baseline)],
  ['ours', ({ perSecond }) => perSecondCell(perSecond.candidate)],
  ['ratio', ({ ratio }) => ratioCell(ratio)],
  ['CPU of API and PostgreSQL for one, ratio', ({ cpuRatio }) => ratioCell(cpuRatio)],
  ['errors', ({ errors }) => `${number(errors.baseline)} / ${number(errors.candidate)}`],
];
