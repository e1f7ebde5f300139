import { Lifecycle } from '../../../shared/runtime/lifecycle.js';
import type { Log } from '../../../shared/runtime/log.js';
import { chatHeaders, messages, openGateway, openSimulator } from '../gateway.js';
import { interleave, type Round, type Row } from '../interleaved/interleave.js';
import { metered } from '../measure.js';
import type { StoreName } from '../options.js';
import type { Peer } from '../peer/portkey.js';
import { type Side, sides } from '../peer/sides.js';
import { completionsOf, type Targets } from '../runs.js';
import type { StoreChoice } from '../store.js';
import type { StreamRun } from './results.js';
import { runStreamLoad, type StreamOrder } from './stream-load.js';

/** How long the worker gathers deltas, in milliseconds: what one may be late by. */
export const windowMs: Readonly<Record<StoreName, number>> = { redis: 20, embedded: 50 };
/** Between two deltas of the provider. */
export const gapMs = 20;
const deltas = 200;
/** Of a single stream at a time, or there would be too few first deltas to speak of. */
const deltasOfOne = 20;
const heatingSeconds = 3;

interface StreamsDeps {
  store: StoreChoice;
  /** Absent when it could not be started. */
  peer: Peer | undefined;
  /** How many at once, one after the other. */
  streams: readonly number[];
  seconds: number;
  rounds: number;
  /** Folder for logs and the store's files. */
  dir: string;
  outer: Lifecycle;
  log: Log;
  onRun(run: StreamRun): void;
}

/** Starts everything on one store, does the runs in turns, and stops everything again. */
export async function runStreamSeries(deps: StreamsDeps): Promise<StreamRun[]> {
  const { store, peer, streams, seconds, rounds, dir, outer, log, onRun } = deps;
  const lifecycle = outer.opened(store.name, new Lifecycle(log), (open) => open.close());
  const running = await store.open(lifecycle, dir);
  const simulator = await openSimulator(lifecycle, dir);
  const gateway = await openGateway({ store: running, simulator, lifecycle, dir });
  const pids = { ...gateway.pids, store: running.pid, peer: peer?.pid };
  const meters = { pids, signal: lifecycle.stopping };
  const measure = async (target: Side, count: number, length: number): Promise<StreamRun> => {
    const lengths = { streams: count, seconds: length, lateMs: windowMs[store.name] };
    const order = orderOf({ target, ...lengths }, { gateway, peer });
    const work = metered(meters, (listeners) => runStreamLoad(order, listeners));
    return { store: store.name, target, streams: count, ...(await Promise.race([work, gateway.failed])) };
  };
  const targets = sides.filter((side) => peer !== undefined || side !== 'portkey');
  // Once, unmeasured: code that Node compiles late must not count against the first runs.
  for (const target of targets) await measure(target, 32, heatingSeconds);
  const rows = streams.map((count) => ({
    title: `${count} streams`,
    measure: (target: Side) => measure(target, count, seconds),
  }));
  const runs: StreamRun[] = [];
  const onRound = (_row: unknown, round: Round<Side, StreamRun>) => {
    for (const run of Object.values(round)) {
      runs.push(run);
      onRun(run);
    }
  };
  await interleave<Side, StreamRun, Row<Side, StreamRun>>({ sides: targets, rows, rounds, onRound });
  await lifecycle.close();
  return runs;
}

/** What the requests to a target look like. */
function orderOf(
  { target, ...run }: { target: Side } & Pick<StreamOrder, 'streams' | 'seconds' | 'lateMs'>,
  targets: Targets,
): StreamOrder {
  const count = run.streams === 1 ? deltasOfOne : deltas;
  const model = `sim-timestamps-${count}-${gapMs}`;
  const order = { ...run, deltas: count, streamMs: count * gapMs };
  if (target === 'quillgate') {
    const headers = { ...chatHeaders, Accept: 'text/event-stream', 'X-LLM-Model': model };
    return { ...order, url: targets.gateway.chatUrl, headers, body: JSON.stringify({ messages }) };
  }
  return {
    ...order,
    ...completionsOf(target, targets),
    body: JSON.stringify({ model, messages, stream: true }),
  };
}
