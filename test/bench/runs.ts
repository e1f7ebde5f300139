import { chatHeaders, type Gateway, messages } from './gateway.js';
import type { LoadOrder, LoadResult } from './load.js';
import { type Metered, measure } from './measure.js';
import { completionsPath, headersToward, type Peer } from './peer/portkey.js';
import type { Side } from './peer/sides.js';
import type { RunningStore } from './store.js';
import type { Traffic } from './traffic.js';

/** One run to do. */
export interface RunPlan {
  /** The chat API, the same with each chat kept for later, the other gateway, or the simulator with nothing before it. */
  readonly target: 'chat' | 'stored chat' | Exclude<Side, 'quillgate'>;
  /** How long the simulated provider takes. */
  readonly latencyMs: number;
  readonly connections: number;
}

/** One run that was done. */
export interface Run extends RunPlan, Metered<LoadResult> {
  /** Calls that the simulator had open at once, from the beginning of the warm-up. */
  readonly maxAtProvider: number;
}

/** What requests can go to. */
export interface Targets {
  readonly gateway: Gateway;
  readonly peer?: Peer | undefined;
}

interface RunDeps extends Targets, Lengths {
  store: RunningStore;
  signal: AbortSignal;
}

/** How long a run is, and how its connections begin. */
export type Lengths = Pick<LoadOrder, 'seconds'> &
  Partial<Pick<LoadOrder, 'warmUpSeconds' | 'timeoutSeconds' | 'spreadSeconds'>>;

/** Does one run, and waits until the requests that its end has cut off are dealt with. */
export async function doRun(plan: RunPlan, deps: RunDeps): Promise<Run> {
  const { gateway, peer, store, signal, ...lengths } = deps;
  const calls = `${gateway.simulatorUrl}/__simulator/calls`;
  await fetch(calls, { method: 'DELETE', signal });
  const toAll = plan.target === 'chat' && { origins: gateway.origins };
  const order = { traffic: trafficOf(plan, deps), connections: plan.connections, ...lengths, ...toAll };
  const pids = { ...gateway.pids, store: store.pid, peer: peer?.pid };
  const metered = await measure(order, { pids, signal, countStore: store.count });
  const stats = (await (await fetch(`${calls}/stats`, { signal })).json()) as CallStats;
  await gateway.answersOne();
  return { ...plan, ...metered, maxAtProvider: stats.providers.openai?.peakInFlight ?? 0 };
}

interface CallStats {
  providers: { openai?: { peakInFlight: number } };
}

/** What the requests of a run look like; all make the same call at the simulator. */
export function trafficOf(
  { target, latencyMs }: Pick<RunPlan, 'target' | 'latencyMs'>,
  { gateway, peer }: Targets,
): Traffic {
  const model = latencyMs === 0 ? 'sim-echo' : `sim-latency-${latencyMs}`;
  if (target === 'chat' || target === 'stored chat') {
    const key = target === 'stored chat' && { 'Idempotency-Key': '{unique}' };
    return {
      ...to(gateway.chatUrl),
      headers: { ...chatHeaders, 'X-LLM-Model': model, ...key },
      bodies: [JSON.stringify({ messages })],
      expected: { status: 200, body: { kind: 'object', fields: ['response'] } },
    };
  }
  const { url, headers } = completionsOf(target, { gateway, peer });
  return {
    ...to(url),
    headers,
    bodies: [JSON.stringify({ model, messages })],
    expected: { status: 200, body: { kind: 'object', fields: ['choices'] } },
  };
}

/** Where OpenAI's own requests go, straight to the simulator or through the other gateway. */
export function completionsOf(
  target: Exclude<Side, 'quillgate'>,
  { gateway: { simulatorUrl }, peer }: Targets,
): { url: string; headers: Record<string, string> } {
  const headers = { Authorization: 'Bearer simulator', 'Content-Type': 'application/json' };
  if (target === 'simulator') return { url: simulatorUrl + completionsPath, headers };
  if (peer === undefined) throw new Error('there is no other gateway');
  return { url: peer.origin + completionsPath, headers: { ...headers, ...headersToward(simulatorUrl) } };
}

function to(url: string): Pick<Traffic, 'method' | 'origin' | 'targets'> {
  const { origin, pathname } = new URL(url);
  return { method: 'POST', origin, targets: [{ path: pathname }] };
}
