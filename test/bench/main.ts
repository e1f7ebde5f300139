import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Lifecycle } from '../../shared/lifecycle.js';
import { createLog } from '../../shared/log.js';
import { compareWithAims } from './aims.js';
import { compareBlogWithAims } from './blog/aims.js';
import { describeBlogRun, describePosts } from './blog/report.js';
import type { BlogResults } from './blog/results.js';
import { blogFolder, runBlogSeries } from './blog/series.js';
import { describeConditions, type MissingStore, openFilesLimit } from './conditions.js';
import { findEmbeddedStore } from './embedded-store.js';
import { type Options, parseOptions, type StoreName, type Subject } from './options.js';
import { findRedisStore } from './redis-store.js';
import { describeConditionList, describeResults, describeRun } from './report.js';
import type { Results, Series } from './results.js';
import type { RunPlan } from './runs.js';
import { planRuns, runSeries } from './series.js';
import { type StoreChoice, storeTitles } from './store.js';

/** Files and connections that a process needs beside those of the requests: to the store, for logs and libraries. */
const otherOpenFiles = 150;
const stopWithinMs = 60_000;

const log = createLog({ program: 'bench', level: 'silent' });
const print = (text: string): boolean => process.stdout.write(text);

/** What the parts of the benchmark run in. */
interface Surroundings {
  options: Options;
  lifecycle: Lifecycle;
  dir: string;
  /** What could not run, and why; filled as that is found out. */
  skipped: string[];
}

/** `npm run bench`: the conditions, runs, tables, and the comparison with the aims. */
async function bench(surroundings: Surroundings): Promise<void> {
  const { options, skipped } = surroundings;
  const measures = (subject: Subject) => options.subjects.includes(subject);
  const stores = measures('chat') ? await findStores(surroundings) : [];
  const conditions = describeConditions(options, stores);
  print(`${describeConditionList(conditions)}\n`);
  const series = await benchChat(stores, surroundings);
  const blog = measures('blog') ? await benchBlog(surroundings) : undefined;
  const aims = [
    ...(measures('chat') ? compareWithAims(series) : []),
    ...(blog ? compareBlogWithAims(blog) : []),
  ];
  const results: Results = { conditions, series, blog, skipped, aims };
  print(`\n${describeResults(results)}`);
  if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify(results, undefined, 2)}\n`);
}

async function benchChat(
  stores: readonly (StoreChoice | MissingStore)[],
  { options, lifecycle, dir, skipped }: Surroundings,
): Promise<Series[]> {
  const plans = withinFileLimit(planRuns(options), skipped);
  const series: Series[] = [];
  for (const store of stores) {
    if ('missing' in store) {
      skipped.push(`${storeTitles[store.name]}: ${store.missing}`);
      continue;
    }
    const onRun = (run: Series['runs'][number]) => print(describeRun(store.name, run));
    const own = { dir: join(dir, store.name), outer: lifecycle, seconds: options.seconds };
    series.push(await runSeries({ store, plans, log, onRun, ...own }));
  }
  return series;
}

async function benchBlog({ options, lifecycle, dir }: Surroundings): Promise<BlogResults> {
  const own = blogFolder(dir);
  mkdirSync(own);
  return await runBlogSeries({
    seconds: options.seconds,
    dir: own,
    outer: lifecycle,
    log,
    onSeeded: (posts) => print(`posts of the blog: ${describePosts(posts)}\n`),
    onRun: (run) => print(describeBlogRun(run)),
  });
}

const findStores = ({ options, dir }: Surroundings): Promise<(StoreChoice | MissingStore)[]> =>
  Promise.all(options.stores.map((name) => findStore(name, options, dir)));

async function findStore(
  name: StoreName,
  options: Options,
  dir: string,
): Promise<StoreChoice | MissingStore> {
  const own = join(dir, name);
  mkdirSync(own);
  try {
    return name === 'redis' ? await findRedisStore(options.redisUrl) : await findEmbeddedStore(own);
  } catch (error) {
    return { name, missing: (error as Error).message };
  }
}

function withinFileLimit(wanted: readonly RunPlan[], skipped: string[]): RunPlan[] {
  const limit = openFilesLimit();
  const fits = ({ connections }: RunPlan) => connections + otherOpenFiles <= limit;
  for (const count of new Set(wanted.filter((plan) => !fits(plan)).map(({ connections }) => connections))) {
    skipped.push(`${count} connections: only ${limit} open files are allowed (ulimit -n)`);
  }
  return wanted.filter(fits);
}

async function main(): Promise<void> {
  const options = parseOptions(process.argv.slice(2), process.env);
  if (options === undefined) return;
  const lifecycle = new Lifecycle(log);
  lifecycle.closeOnSignals({ graceMs: stopWithinMs });
  // npm passes on the Ctrl-C that the terminal has sent already, and a second one must not cut the stopping short.
  process.on('SIGINT', () => undefined);
  const dir = mkdtempSync(join(tmpdir(), 'quillgate-bench-'));
  lifecycle.opened('temporary folder', dir, (path) => rmSync(path, { recursive: true, force: true }));
  try {
    await bench({ options, lifecycle, dir, skipped: [] });
  } catch (error) {
    if (!lifecycle.stopping.aborted) throw error;
  } finally {
    await lifecycle.close();
  }
}

main().catch((error: Error) => {
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
});
