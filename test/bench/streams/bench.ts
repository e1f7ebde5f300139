import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Lifecycle } from '../../../shared/runtime/lifecycle.js';
import type { Log } from '../../../shared/runtime/log.js';
import type { MissingStore } from '../conditions.js';
import type { Options } from '../options.js';
import type { Peer } from '../peer/portkey.js';
import { type StoreChoice, storeTitles } from '../store.js';
import { describeStreamRun } from './report.js';
import { type StreamFigures, type StreamRun, summarise } from './results.js';
import { runStreamSeries } from './series.js';

interface Surroundings {
  options: Options;
  lifecycle: Lifecycle;
  dir: string;
  log: Log;
  /** Measured in turns with ours when there is one. */
  peer: Peer | undefined;
  skipped: string[];
  print(text: string): void;
}

/** The streams on each store that there is. */
export async function benchStreams(
  stores: readonly (StoreChoice | MissingStore)[],
  { options, lifecycle, dir, log, peer, skipped, print }: Surroundings,
): Promise<StreamFigures[]> {
  const { streams, seconds, rounds } = options;
  const runs: StreamRun[] = [];
  for (const store of stores) {
    if ('missing' in store) {
      skipped.push(`streams, ${storeTitles[store.name]}: ${store.missing}`);
      continue;
    }
    // Of a chat's run on the same store, the folder is in use.
    const own = join(dir, `${store.name}-streams`);
    mkdirSync(own);
    const onRun = (run: StreamRun) => print(describeStreamRun(run));
    const deps = { store, peer, streams, seconds, rounds, log, onRun };
    runs.push(...(await runStreamSeries({ ...deps, dir: own, outer: lifecycle })));
  }
  return summarise(runs, seconds);
}
