import { setTimeout as delay } from 'node:timers/promises';
import { Lifecycle } from '../../../shared/runtime/lifecycle.js';
import type { Log } from '../../../shared/runtime/log.js';
import { openGateway, openSimulator } from '../gateway.js';
import { interleave, type Row } from '../interleaved/interleave.js';
import type { StoreName } from '../options.js';
import { whyNotAnswered } from '../requests.js';
import { doRun, type RunPlan, trafficOf } from '../runs.js';
import { type RunningStore, type StoreChoice, storeTitles } from '../store.js';
import { countsBetween, countsPer } from '../store-counts.js';
import { startMeter } from '../usage.js';
import {
  type Idle,
  type Measured,
  mapParts,
  measuredOf,
  type Round,
  type Summary,
  summarise,
} from './figures.js';
import type { Peer } from './portkey.js';
import { type Side, sides } from './sides.js';

/** So many callers, and so long a provider. */
export type Load = Pick<RunPlan, 'latencyMs' | 'connections'>;

/** What came of one row. */
export interface RowResult extends Load, Summary {
  readonly rounds: readonly Round[];
}

/** What came of one store. */
export interface ChatResults {
  readonly store: StoreName;
  readonly idlePerSecond: Idle;
  readonly rows: readonly RowResult[];
  readonly skipped: readonly string[];
}

interface ChatDeps {
  store: StoreChoice;
  peer: Peer;
  loads: readonly Load[];
  seconds: number;
  rounds: number;
  /** Folder for logs and the store's files. */
  dir: string;
  outer: Lifecycle;
  log: Log;
  onRound(title: string, round: Round): void;
}

type LoadRow = Row<Side, Measured> & { readonly load: Load };

const targets = { quillgate: 'chat', portkey: 'portkey', simulator: 'simulator' } as const;

/** Unmeasured: code that Node compiles late must not count against the first rounds. */
const heating: Load = { latencyMs: 0, connections: 32 };
const heatingSeconds = 3;

/** Measures our gateway on one store, the other one and the simulator in turns, each before the same simulator. */
export async function compareChat(deps: ChatDeps): Promise<ChatResults> {
  const { store, peer, loads, rounds, dir, outer, log } = deps;
  const lifecycle = outer.opened(store.name, new Lifecycle(log), (open) => open.close());
  const running = await store.open(lifecycle, dir);
  const simulator = await openSimulator(lifecycle, dir);
  const gateway = await openGateway({ store: running, simulator, lifecycle, dir });
  const runDeps = { gateway, peer, store: running, signal: lifecycle.stopping };
  const run = (side: Side, load: Load, seconds: number) => {
    const work = doRun({ target: targets[side], ...load }, { ...runDeps, ...lengthsOf(load, seconds) });
    return Promise.race([work, gateway.failed]);
  };
  for (const side of sides) await run(side, heating, heatingSeconds);
  const idle = await measureIdle(running, gateway.pids, lifecycle.stopping);
  const rows = loads.map((load): LoadRow => {
    const whyNot = (side: Side) =>
      whyNotAnswered(trafficOf({ target: targets[side], ...load }, runDeps), lifecycle.stopping);
    const measure = async (side: Side) => measuredOf(side, await run(side, load, deps.seconds), idle);
    return { load, title: titleOf(load, store.name), whyNot, measure };
  });
  const onRound = ({ title }: LoadRow, round: Round) => deps.onRound(title, round);
  const measured = await interleave<Side, Measured, LoadRow>({ sides, rows, rounds, onRound });
  await lifecycle.close();
  return {
    store: store.name,
    idlePerSecond: idle,
    rows: measured.rows.map(({ row, rounds: all }) => ({ ...row.load, ...summarise(all), rounds: all })),
    skipped: measured.skipped,
  };
}

export const titleOf = ({ latencyMs, connections }: Load, store: StoreName): string =>
  `${storeTitles[store]}, provider ${latencyMs} ms, connections ${connections}`;

/** For each time of the provider all numbers of callers. */
export const planLoads = (latenciesMs: readonly number[], connections: readonly number[]): Load[] =>
  latenciesMs.flatMap((latencyMs) => connections.map((count) => ({ latencyMs, connections: count })));

const warmUpSeconds = 1;
const timeoutSeconds = 10;
/** Each connection gets so many answers at least. */
const answersOfEach = 8;

/** A measurement has to be several times as long as an answer, and no answer of the warm-up may be in it alone. */
export function lengthsOf(
  { latencyMs }: Load,
  seconds: number,
): { seconds: number; warmUpSeconds: number; timeoutSeconds: number } {
  const latencySeconds = latencyMs / 1000;
  return {
    seconds: Math.max(seconds, answersOfEach * latencySeconds),
    warmUpSeconds: Math.max(warmUpSeconds, 2 * latencySeconds),
    timeoutSeconds: Math.max(timeoutSeconds, 3 * latencySeconds),
  };
}

const restSeconds = 2;
/** Pruning comes once in it. */
const idleSeconds = 10;

/** What our processes do without requests: heartbeats, looks for jobs and at what is over. */
async function measureIdle(
  store: RunningStore,
  pids: Parameters<typeof startMeter>[0],
  signal: AbortSignal,
): Promise<Idle> {
  await delay(restSeconds * 1000, undefined, { signal });
  const before = await store.count?.();
  const meter = startMeter({ ...pids, store: store.pid });
  await delay(idleSeconds * 1000, undefined, { signal });
  const { parts } = meter.stop();
  const after = await store.count?.();
  return {
    cpuMs: mapParts(parts, ({ cpuSeconds }) => (cpuSeconds * 1000) / idleSeconds),
    ...(before && after && { store: countsPer(countsBetween(before, after), idleSeconds) }),
  };
}
