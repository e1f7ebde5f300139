import {
  type Column,
  describeErrors,
  describeLoad,
  ms,
  number,
  partTitles,
  percent,
  perSecond,
  table,
  usageCell,
  usageLegend,
} from '../table.js';
import { type BlogResults, type BlogRun, medianRate, rateOf, type Task } from './results.js';
import type { Seeded } from './seed.js';

/** What the tasks are called. */
export const taskTitles: Readonly<Record<Task, string>> = {
  get: 'GET /blogs/{id}, random ids',
  'first page': 'GET /blogs?limit=20',
  'far page': 'the same, 500th page',
  'search rare': 'GET /blogs?q=, rare words',
  'search medium': 'GET /blogs?q=, medium words',
  'search common': 'GET /blogs?q=, common words',
  tag: 'GET /blogs?limit=20&tag=, all tags',
  author: 'GET /blogs?limit=20&author=, all authors',
  'post page': 'GET /blogs/{slug}, a page, random slugs',
  'index page': 'GET /blogs, a page',
  'far index page': 'GET /blogs?cursor=, pages from all over the blog',
  'newer index page': 'the same, on the way back',
  'tag page': 'GET /blogs?tag=, a page, all tags',
  'far tag page': 'GET /blogs?tag=&cursor=, pages from all over the blog',
  'feed unchanged': 'GET /feed.json, If-None-Match, 304',
  patch: 'PATCH /blogs/{id}, If-Match',
  create: 'POST /blogs',
};

/** One run in one line, to watch the benchmark go. */
export const describeBlogRun = ({ task, connections, load }: BlogRun): string =>
  describeLoad(taskTitles[task], connections, load);

/** What the database holds before the load, in one line. */
export function describePosts({ averageContent, databaseBytes, postsPerWord, seconds }: SeededFacts): string {
  const words = Object.entries(postsPerWord).map(
    ([frequency, [least, most]]) => `${frequency} ${number(least)} to ${number(most)}`,
  );
  return (
    `${number(averageContent)} characters each, ${number(databaseBytes / 1e6)} MB in all, seeded in ` +
    `${number(seconds)} s; posts with a word: ${words.join(', ')}`
  );
}

type SeededFacts = Pick<Seeded, 'averageContent' | 'databaseBytes' | 'postsPerWord' | 'seconds'>;

/** All of it as Markdown that can be pasted into a page. */
export function describeBlog({ posts, runs, explanations }: BlogResults): string {
  const rows = runs.map((run) => (isRound(run) ? undefined : run)).filter((run) => run !== undefined);
  return [
    `\nPosts: ${describePosts(posts)}.\n\n`,
    table(speedColumns, rows),
    describeRounds(runs),
    usageLegend,
    table(usageColumns, rows),
    ...explanations.map(
      ({ query, statement, plan }) => `${query}:\n\n\`\`\`\n${statement}\n\n${plan}\n\`\`\`\n\n`,
    ),
  ].join('');
}

const roundTasks: readonly Task[] = ['first page', 'far page'];

const isRound = ({ task }: BlogRun): boolean => roundTasks.includes(task);

/** The two pages in the order of their rounds, and the medians. */
function describeRounds(runs: readonly BlogRun[]): string {
  const line = (task: Task) => {
    const rates = runs.filter((run) => run.task === task).map((run) => number(rateOf(run)));
    const median = number(medianRate(runs, task) ?? Number.NaN);
    return `- ${taskTitles[task]}, requests/s in turns: ${rates.join(', ')}; median ${median}\n`;
  };
  return `${roundTasks.map(line).join('')}\n`;
}

const nameColumns: readonly Column<BlogRun>[] = [
  ['request', ({ task }) => taskTitles[task]],
  ['connections', ({ connections }) => number(connections)],
];

const speedColumns: readonly Column<BlogRun>[] = [
  ...nameColumns,
  ['requests/s', ({ load }) => perSecond(load)],
  ['p50, ms', ({ load }) => ms(load.p50Ms)],
  ['p99, ms', ({ load }) => ms(load.p99Ms)],
  ['errors', ({ load }) => describeErrors(load.errors)],
];

const usageColumns: readonly Column<BlogRun>[] = [
  ...nameColumns,
  ...(['api', 'store', 'load'] as const).map(
    (part): Column<BlogRun> => [partTitles[part], ({ load, usage }) => usageCell(load, usage.parts[part])],
  ),
  ['machine busy', ({ usage }) => percent(usage.machineBusy)],
  ['with anything else', ({ usage }) => percent(usage.othersBusy)],
];
