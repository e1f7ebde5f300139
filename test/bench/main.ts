import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Lifecycle } from '../../shared/lifecycle.js';
import { createLog } from '../../shared/log.js';
import { compareWithAims } from './aims.js';
import { describeConditions, type MissingStore, openFilesLimit } from './conditions.js';
import { findEmbeddedStore } from './embedded-store.js';
import { type Options, parseOptions, type StoreName } from './options.js';
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

/** `npm run bench`: the conditions, runs on each store, tables, and the comparison with the aims. */
async function bench(options: Options, lifecycle: Lifecycle, dir: string): Promise<void> {
  const stores = await Promise.all(options.stores.map((name) => findStore(name, options, dir)));
  const conditions = describeConditions(options, stores);
  print(`${describeConditionList(conditions)}\n`);
  const { plans, skipped } = withinFileLimit(planRuns(options));
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
  const results: Results = { conditions, series, skipped, aims: compareWithAims(series) };
  print(`\n${describeResults(results)}`);
  if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify(results, undefined, 2)}\n`);
}

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

function withinFileLimit(wanted: readonly RunPlan[]): { plans: RunPlan[]; skipped: string[] } {
  const limit = openFilesLimit();
  const fits = ({ connections }: RunPlan) => connections + otherOpenFiles <= limit;
  const tooMany = new Set(wanted.filter((plan) => !fits(plan)).map(({ connections }) => connections));
  const skipped = [...tooMany].map(
    (count) => `${count} connections: only ${limit} open files are allowed (ulimit -n)`,
  );
  return { plans: wanted.filter(fits), skipped };
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
    await bench(options, lifecycle, dir);
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
