import { type AimResult, notMeasured, verdict } from '../aims.js';
import { errorCount } from '../results.js';
import { taskTitles } from './report.js';
import { type BlogResults, type BlogRun, medianRate, pageTasks, rateOf, type Task } from './results.js';
import type { Frequency } from './seed.js';

const minReadsPerSecond = 3000;
const minCreatedPerSecond = 1000;
const maxPageRatio = 1.3;
/** Of a search, and of a page for people. */
const maxMs = 50;

/** Compares with what the project wants to reach. */
export function compareBlogWithAims({ runs }: BlogResults): AimResult[] {
  return [
    throughput(runs, 'get', `GET /blogs/{id}: at least ${minReadsPerSecond} requests/s`, minReadsPerSecond),
    paging(runs),
    throughput(
      runs,
      'create',
      `POST /blogs: at least ${minCreatedPerSecond} requests/s`,
      minCreatedPerSecond,
    ),
    ...(['rare', 'medium', 'common'] as const).map((frequency) => searchTime(runs, frequency)),
    ...pageTasks.map((task) => p99(runs, task, `${taskTitles[task]}: p99 below ${maxMs} ms`)),
  ];
}

function throughput(runs: readonly BlogRun[], task: Task, title: string, least: number): AimResult {
  const run = runs.find((one) => one.task === task);
  if (run === undefined) return notMeasured(title);
  const aim = `${title} at ${run.connections} connections`;
  const errors = errorCount(run.load.errors);
  const numbers = `${rateOf(run).toFixed(0)} requests/s, ${errors} errors`;
  return { aim, verdict: verdict(rateOf(run) >= least && errors === 0), numbers };
}

function paging(runs: readonly BlogRun[]): AimResult {
  const aim = `GET /blogs?limit=20: the first page at most ${maxPageRatio} times as fast as the 500th`;
  const first = medianRate(runs, 'first page');
  const far = medianRate(runs, 'far page');
  if (first === undefined || far === undefined) return notMeasured(aim);
  const ratio = first / far;
  const numbers = `medians ${first.toFixed(0)} / ${far.toFixed(0)} requests/s = ${ratio.toFixed(2)}`;
  return { aim, verdict: verdict(ratio <= maxPageRatio), numbers };
}

const searchTime = (runs: readonly BlogRun[], frequency: Frequency): AimResult =>
  p99(runs, `search ${frequency}`, `GET /blogs?q=, ${frequency} words: p99 below ${maxMs} ms`);

/** Of tasks that have the same bound. */
function p99(runs: readonly BlogRun[], task: Task, aim: string): AimResult {
  const run = runs.find((one) => one.task === task);
  if (run?.load.p99Ms === undefined) return notMeasured(aim);
  const errors = errorCount(run.load.errors);
  const numbers = `${run.load.p99Ms.toFixed(1)} ms at ${run.connections} connections and ${rateOf(run).toFixed(0)} requests/s, ${errors} errors`;
  return { aim, verdict: verdict(run.load.p99Ms < maxMs && errors === 0), numbers };
}
