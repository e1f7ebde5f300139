import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Lifecycle } from '../../../shared/runtime/lifecycle.js';
import type { Log } from '../../../shared/runtime/log.js';
import { loadAverage } from '../against/conditions.js';
import { describePeerConditions, withinFileLimit } from '../conditions.js';
import { findStores } from '../find-stores.js';
import type { Options } from '../options.js';
import { describeConditionList } from '../report.js';
import { storeTitles } from '../store.js';
import { benchStreams } from '../streams/bench.js';
import { compareStreamsWithAims } from '../streams/report.js';
import { comparePeerWithAims } from './aims.js';
import { type ChatResults, compareChat, planLoads } from './chat.js';
import { writePlots } from './plots.js';
import { openPeer } from './portkey.js';
import { describePeerResults, describeRound, type PeerResults } from './report.js';

/** What a run beside another gateway happens in. */
export interface Surroundings {
  options: Options;
  lifecycle: Lifecycle;
  /** Folder for everything, removed at the end. */
  dir: string;
  log: Log;
  skipped: string[];
  print(text: string): void;
}

/** `npm run bench -- --peer portkey`: our gateway, another one and the simulator alone in turns. Throws when npm cannot get the other. */
export async function compareWithPeer(surroundings: Surroundings): Promise<PeerResults> {
  const { options, lifecycle, dir, log, skipped, print } = surroundings;
  const { connections, latenciesMs, seconds, rounds, subjects } = options;
  const stores = await findStores(options, dir);
  const conditions = describePeerConditions(options, stores);
  print(`${describeConditionList(conditions)}\n`);
  const peerFolder = join(dir, 'peer');
  mkdirSync(peerFolder);
  const peer = await openPeer(lifecycle, peerFolder);
  const chats: ChatResults[] = [];
  const loads = withinFileLimit(planLoads(latenciesMs, connections), skipped);
  for (const store of subjects.includes('chat') ? stores : []) {
    if ('missing' in store) {
      skipped.push(`${storeTitles[store.name]}: ${store.missing}`);
      continue;
    }
    const onRound: Parameters<typeof compareChat>[0]['onRound'] = (title, round) =>
      print(describeRound(title, round));
    const deps = { store, peer, loads, seconds, rounds, log, onRound };
    const chat = await compareChat({ ...deps, dir: join(dir, store.name), outer: lifecycle });
    chats.push(chat);
    skipped.push(...chat.skipped);
  }
  const streams = subjects.includes('streams') ? await benchStreams(stores, { ...surroundings, peer }) : [];
  const aims = [
    ...(subjects.includes('chat') ? comparePeerWithAims(chats) : []),
    ...(subjects.includes('streams') ? compareStreamsWithAims(streams) : []),
  ];
  const after = ['load average after', loadAverage()] as const;
  const results = { conditions: [...conditions, after], chats, streams, skipped, aims };
  print(`\n${describePeerResults(results)}`);
  if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify(results, undefined, 2)}\n`);
  if (options.plots !== undefined) print(`\nplots: ${writePlots(chats, options.plots).join(', ')}\n`);
  return results;
}
