import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Lifecycle } from '../../shared/runtime/lifecycle.js';
import { createLog } from '../../shared/runtime/log.js';
import { compareWithCommit } from './against/compare.js';
import type { Compared } from './against/comparison.js';
import { describeRound } from './against/report.js';
import { compareWithAims } from './aims.js';
import { type ApiProcessesRun, describeApiProcessesRun, runApiProcesses } from './api-processes/series.js';
import { compareBlogWithAims } from './blog/aims.js';
import { compareWithExpress } from './blog/beside-express.js';
import { describeBlogRun, describePosts } from './blog/report.js';
import type { BlogResults } from './blog/results.js';
import { blogFolder, runBlogSeries } from './blog/series.js';
import { describeConditions, type MissingStore, withinFileLimit } from './conditions.js';
import { findStores } from './find-stores.js';
import { type Options, parseOptions, type Subject } from './options.js';
import { compareWithPeer } from './peer/compare.js';
import { runGuard } from './peer/guard.js';
import { describeConditionList, describeResults, describeRun } from './report.js';
import type { Results, Series } from './results.js';
import { planRuns, runSeries } from './series.js';
import { type StoreChoice, storeTitles } from './store.js';
import { benchStreams } from './streams/bench.js';
import { compareStreamsWithAims } from './streams/report.js';

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

type Stores = readonly (StoreChoice | MissingStore)[];

/** `npm run bench`: the conditions, runs, tables, and the comparison with the aims. */
async function bench(surroundings: Surroundings): Promise<void> {
  const { options, dir, skipped } = surroundings;
  const measures = (subject: Subject) => options.subjects.includes(subject);
  const stores = options.subjects.some((subject) => !subject.startsWith('blog'))
    ? await findStores(options, dir)
    : [];
  const conditions = describeConditions(options, stores);
  print(`${describeConditionList(conditions)}\n`);
  const series = measures('chat') ? await benchChat(stores, surroundings) : [];
  const blog = measures('blog') ? await benchBlog(surroundings) : undefined;
  const blogPeer = measures('blog-peer') ? await benchBesideExpress(surroundings) : undefined;
  const streams = measures('streams')
    ? await benchStreams(stores, { ...surroundings, log, print, peer: undefined })
    : [];
  const apiProcesses = measures('api-processes') ? await benchApiProcesses(stores, surroundings) : [];
  const aims = [
    ...(measures('chat') ? compareWithAims(series) : []),
    ...(blog ? compareBlogWithAims(blog) : []),
    ...(measures('streams') ? compareStreamsWithAims(streams) : []),
  ];
  const results: Results = { conditions, series, blog, blogPeer, streams, apiProcesses, skipped, aims };
  print(`\n${describeResults(results)}`);
  if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify(results, undefined, 2)}\n`);
}

async function benchChat(
  stores: Stores,
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

async function benchApiProcesses(stores: Stores, surroundings: Surroundings): Promise<ApiProcessesRun[]> {
  const { options, lifecycle: outer, dir, skipped } = surroundings;
  const store = stores.find(({ name }) => name === 'redis');
  // Redis counts its commands, and other users of a shared one send some too.
  if (store === undefined || 'missing' in store || options.redisUrl !== undefined) {
    skipped.push("API processes: needs a Redis of the benchmark's own");
    return [];
  }
  const onRun = (run: ApiProcessesRun) => print(describeApiProcessesRun(run));
  const { apis, seconds } = options;
  return await runApiProcesses({ store, apis, seconds, dir, outer, log, onRun });
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

async function benchBesideExpress({ options, lifecycle, dir, skipped }: Surroundings): Promise<Compared> {
  const { rounds, seconds } = options;
  const deps = { rounds, seconds, dir, outer: lifecycle, log };
  const compared = await compareWithExpress(deps, (title, round) => print(describeRound(title, round)));
  skipped.push(...compared.skipped);
  return compared;
}

/** What the exit code says. */
const exitCodes = { done: 0, slower: 1, failed: 2 } as const;

async function main(): Promise<keyof typeof exitCodes> {
  const options = parseOptions(process.argv.slice(2), process.env);
  if (options === undefined) return 'done';
  const lifecycle = new Lifecycle(log);
  lifecycle.closeOnSignals({ graceMs: stopWithinMs });
  // npm passes on the Ctrl-C that the terminal has sent already, and a second one must not cut the stopping short.
  process.on('SIGINT', () => undefined);
  const dir = mkdtempSync(join(tmpdir(), 'quillgate-bench-'));
  lifecycle.opened('temporary folder', dir, (path) => rmSync(path, { recursive: true, force: true }));
  const surroundings = { options, lifecycle, dir, skipped: [], log, print };
  try {
    if (options.against !== undefined) return await compareWithCommit(options.against, surroundings);
    if (options.guard !== undefined) return await runGuard(options.guard, surroundings);
    if (options.peer !== undefined) await compareWithPeer(surroundings);
    else await bench(surroundings);
    return 'done';
  } catch (error) {
    if (!lifecycle.stopping.aborted) throw error;
    return 'failed';
  } finally {
    await lifecycle.close();
  }
}

let exitCode: number = exitCodes.failed;
// Also when a signal ends it: figures of half a comparison speak for nobody.
process.on('exit', () => {
  process.exitCode = exitCode;
});
main().then(
  (outcome) => {
    exitCode = exitCodes[outcome];
  },
  (error: Error) => process.stderr.write(`${error.message}\n`),
);
