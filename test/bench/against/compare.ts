import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Lifecycle } from '../../../shared/runtime/lifecycle.js';
import type { Log } from '../../../shared/runtime/log.js';
import { withinFileLimit } from '../conditions.js';
import { findStores } from '../find-stores.js';
import type { Options } from '../options.js';
import { thisCheckout } from '../programs.js';
import { describeConditionList } from '../report.js';
import { storeTitles } from '../store.js';
import { compareBlog } from './blog.js';
import { compareChat, planRows } from './chat.js';
import { checkOut, findCommit } from './checkout.js';
import type { Compared, ComparisonDeps } from './comparison.js';
import { describeComparisonConditions, loadAverage, warmUpSeconds } from './conditions.js';
import { type Comparison, describeComparison, describeRound } from './report.js';

interface Surroundings {
  options: Options;
  lifecycle: Lifecycle;
  /** Folder for everything, removed at the end. */
  dir: string;
  log: Log;
  print(text: string): void;
}

/** `npm run bench -- --against COMMIT`: builds the commit, measures both checkouts in turns, and says where this one is slower. */
export async function compareWithCommit(
  name: string,
  surroundings: Surroundings,
): Promise<'done' | 'slower'> {
  const { options, lifecycle, dir, log, print } = surroundings;
  const commit = await findCommit(name, { lifecycle });
  const baseline = await checkOut(commit, { dir, lifecycle, onStep: (step) => print(`${step}\n`) });
  const stores = options.subjects.includes('chat') ? await findStores(options, dir) : [];
  const conditions = describeComparisonConditions({ options, baseline, stores });
  print(`\n${describeConditionList(conditions)}\n`);
  const deps: Omit<ComparisonDeps, 'dir'> = {
    roots: { baseline: baseline.root, candidate: thisCheckout },
    rounds: options.rounds,
    seconds: options.seconds,
    warmUpSeconds,
    outer: lifecycle,
    log,
    onRound: (title, round) => print(describeRound(title, round)),
  };
  const parts: Compared[] = [];
  const skipped: string[] = [];
  const plans = withinFileLimit(planRows(options), skipped);
  for (const store of stores) {
    if ('missing' in store) skipped.push(`${storeTitles[store.name]}: ${store.missing}`);
    else parts.push(await compareChat({ ...deps, store, plans, dir: join(dir, store.name) }));
  }
  if (options.subjects.includes('blog'))
    parts.push(await compareBlog({ ...deps, dir: newFolder(dir, 'blog') }));
  const comparison: Comparison = {
    conditions: [...conditions, ['load average after', loadAverage()]],
    rows: parts.flatMap(({ rows }) => rows),
    skipped: [...skipped, ...parts.flatMap((part) => part.skipped)],
  };
  print(`\n${describeComparison(comparison)}`);
  if (options.json !== undefined)
    writeFileSync(options.json, `${JSON.stringify(comparison, undefined, 2)}\n`);
  if (comparison.rows.length === 0) throw new Error('Nothing could be compared.');
  return comparison.rows.some(({ verdict }) => verdict === 'slower') ? 'slower' : 'done';
}

function newFolder(dir: string, name: string): string {
  const folder = join(dir, name);
  mkdirSync(folder);
  return folder;
}
