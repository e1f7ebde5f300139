import { Lifecycle } from '../../../shared/runtime/lifecycle.js';
import type { Log } from '../../../shared/runtime/log.js';
import { chatHeaders, type Gateway, messages, openGateway, openSimulator } from '../gateway.js';
import { metered } from '../measure.js';
import type { StoreName } from '../options.js';
import type { StoreChoice } from '../store.js';
import type { PartPids } from '../usage.js';
import type { Peer } from './peer.js';
import type { StreamRun, StreamTarget } from './results.js';
import { runStreamLoad, type StreamOrder } from './stream-load.js';

/** How long the worker gathers deltas, in milliseconds: what one may be late by. */
export const windowMs: Readonly<Record<StoreName, number>> = { redis: 20, embedded: 50 };
/** Between two deltas of the provider. */
export const gapMs = 20;
const deltas = 200;
/** Of a single stream at a time, or there would be too few first deltas to speak of. */
const deltasOfOne = 20;
/** Each target is measured this often, in turns: the machine drifts. */
export const rounds = 2;
const heatingSeconds = 3;

interface StreamsDeps {
  store: StoreChoice;
  /** Absent when it could not be started. */
  peer: Peer | undefined;
  /** How many at once, one after the other. */
  streams: readonly number[];
  seconds: number;
  /** Folder for logs and the store's files. */
  dir: string;
  outer: Lifecycle;
  log: Log;
  onRun(run: StreamRun): void;
}

/** Starts everything on one store, does the runs, and stops everything again. */
export async function runStreamSeries(deps: StreamsDeps): Promise<StreamRun[]> {
  const { store, peer, streams, seconds, dir, outer, log, onRun } = deps;
  const lifecycle = outer.opened(store.name, new Lifecycle(log), (open) => open.close());
  const running = await store.open(lifecycle, dir);
  const simulator = await openSimulator(lifecycle, dir);
  const gateway = await openGateway({ store: running, simulator, lifecycle, dir });
  const pids = { ...gateway.pids, store: running.pid, peer: peer?.pid };
  const targets: StreamTarget[] = ['simulator', 'quillgate', ...(peer ? (['portkey'] as const) : [])];
  const measure = (target: StreamTarget, count: number, length: number) =>
    Promise.race([
      measureStreams(
        orderOf({ target, streams: count, seconds: length, lateMs: windowMs[store.name] }, { gateway, peer }),
        pids,
        lifecycle.stopping,
      ),
      gateway.failed,
    ]);
  // Once, unmeasured: code that Node compiles late must not count against the first runs.
  for (const target of targets) await measure(target, 32, heatingSeconds);
  const runs: StreamRun[] = [];
  for (const count of streams)
    for (let round = 0; round < rounds; round += 1)
      for (const target of round % 2 === 0 ? targets : targets.toReversed()) {
        const run = {
          ...{ store: store.name, target, streams: count },
          ...(await measure(target, count, seconds)),
        };
        runs.push(run);
        onRun(run);
      }
  await lifecycle.close();
  return runs;
}

const measureStreams = (order: StreamOrder, pids: PartPids, signal: AbortSignal) =>
  metered(pids, signal, (listeners) => runStreamLoad(order, listeners));

/** What the requests to a target look like; all make the same call at the simulator. */
function orderOf(
  { target, ...run }: { target: StreamTarget } & Pick<StreamOrder, 'streams' | 'seconds' | 'lateMs'>,
  { gateway, peer }: { gateway: Gateway; peer: Peer | undefined },
): StreamOrder {
  const count = run.streams === 1 ? deltasOfOne : deltas;
  const model = `sim-timestamps-${count}-${gapMs}`;
  const order = { ...run, deltas: count, streamMs: count * gapMs };
  if (target === 'quillgate') {
    const headers = { ...chatHeaders, Accept: 'text/event-stream', 'X-LLM-Model': model };
    return { ...order, url: gateway.chatUrl, headers, body: JSON.stringify({ messages }) };
  }
  const body = JSON.stringify({ model, messages, stream: true });
  const headers = { Authorization: 'Bearer simulator', 'Content-Type': 'application/json' };
  const path = '/v1/chat/completions';
  if (target === 'simulator') return { ...order, url: `${gateway.simulatorUrl}${path}`, headers, body };
  return {
    ...order,
    url: `${peer?.origin}${path}`,
    headers: {
      ...headers,
      'x-portkey-provider': 'openai',
      'x-portkey-custom-host': `${gateway.simulatorUrl}/v1`,
    },
    body,
  };
}
