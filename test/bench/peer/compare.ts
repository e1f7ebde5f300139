import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Lifecycle } from '../../../shared/runtime/lifecycle.js';
import type { Log } from '../../../shared/runtime/log.js';
import { loadAverage } from '../against/conditions.js';
import { describePeerConditions, withinFileLimit } from '../conditions.js';
import { findStores } from '../find-stores.js';
import type { Options, Subject } from '../options.js';
import { describeConditionList } from '../report.js';
import { type StoreChoice, storeTitles } from '../store.js';
import { benchStreams } from '../streams/bench.js';
import { compareStreamsWithAims } from '../streams/report.js';
import { compareInFlightWithAims, comparePeerWithAims } from './aims.js';
import { type ChatResults, compareChat, planLoads } from './chat.js';
import type { Round } from './figures.js';
import { compareInFlight, type InFlightResults } from './in-flight.js';
import { openPeer, type Peer } from './portkey.js';
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
  const { options, lifecycle, dir, skipped, print } = surroundings;
  const measures = (subject: Subject) => options.subjects.includes(subject);
  const stores = await findStores(options, dir);
  const conditions = describePeerConditions(options, stores);
  print(`${describeConditionList(conditions)}\n`);
  const peer = await openPeer(lifecycle, newFolder(dir, 'peer'));
  const chats = measures('chat') ? await compareChats(stores, peer, surroundings) : [];
  const inFlight = measures('in-flight') ? await compareFlights(stores, peer, surroundings) : [];
  const streams = measures('streams') ? await benchStreams(stores, { ...surroundings, peer }) : [];
  skipped.push(...[...chats, ...inFlight].flatMap((part) => part.skipped));
  const aims = [
    ...(measures('chat') ? comparePeerWithAims(chats) : []),
    ...compareInFlightWithAims(inFlight),
    ...(measures('streams') ? compareStreamsWithAims(streams) : []),
  ];
  const after = ['load average after', loadAverage()] as const;
  const results = { conditions: [...conditions, after], chats, inFlight, streams, skipped, aims };
  print(`\n${describePeerResults(results)}`);
  if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify(results, undefined, 2)}\n`);
  return results;
}

type Stores = Awaited<ReturnType<typeof findStores>>;

async function compareChats(stores: Stores, peer: Peer, surroundings: Surroundings): Promise<ChatResults[]> {
  const { options, lifecycle: outer, dir, log, skipped, print } = surroundings;
  const { connections, latenciesMs, seconds, rounds } = options;
  const loads = withinFileLimit(planLoads(latenciesMs, connections), skipped);
  const results: ChatResults[] = [];
  for (const store of present(stores, skipped)) {
    const onRound = (title: string, round: Round) => print(describeRound(title, round));
    const deps = { store, peer, outer, log, dir: join(dir, store.name) };
    results.push(await compareChat({ ...deps, loads, seconds, rounds, onRound }));
  }
  return results;
}

async function compareFlights(
  stores: Stores,
  peer: Peer,
  surroundings: Surroundings,
): Promise<InFlightResults[]> {
  const { options, lifecycle: outer, dir, log, skipped, print } = surroundings;
  const loads = withinFileLimit(options.inFlight, skipped);
  const results: InFlightResults[] = [];
  for (const store of present(stores, skipped)) {
    const onRound = (title: string, round: Round) => print(describeRound(title, round));
    const deps = { store, peer, outer, log, dir: newFolder(dir, `${store.name}-in-flight`) };
    results.push(await compareInFlight({ ...deps, loads, rounds: options.rounds, onRound }));
  }
  return results;
}

/** The stores that run here; says in `skipped` why others do not. */
function present(stores: Stores, skipped: string[]): StoreChoice[] {
  const missing = stores.filter((store) => 'missing' in store);
  skipped.push(...missing.map(({ name, missing: reason }) => `${storeTitles[name]}: ${reason}`));
  return stores.filter((store): store is StoreChoice => !('missing' in store));
}

function newFolder(dir: string, name: string): string {
  const folder = join(dir, name);
  mkdirSync(folder);
  return folder;
}
