import { chatHeaders, type Gateway, messages } from './gateway.js';
import type { LoadResult } from './load.js';
import { measure } from './measure.js';
import type { Traffic } from './traffic.js';
import type { Usage } from './usage.js';

/** One run to do. */
export interface RunPlan {
  /** The chat API, the same with each chat kept for later, or the simulator without anything of ours before it. */
  readonly target: 'chat' | 'stored chat' | 'simulator';
  /** How long the simulated provider takes. */
  readonly latencyMs: number;
  readonly connections: number;
}

/** One run that was done. */
export interface Run extends RunPlan {
  readonly load: LoadResult;
  readonly usage: Usage;
  /** Calls that the simulator had open at once, from the beginning of the warm-up. */
  readonly maxAtProvider: number;
}

interface RunDeps {
  gateway: Gateway;
  storePid: number | undefined;
  seconds: number;
  warmUpSeconds?: number;
  signal: AbortSignal;
}

/** Does one run, and waits until the requests that its end has cut off are dealt with. */
export async function doRun(plan: RunPlan, deps: RunDeps): Promise<Run> {
  const { gateway, storePid, signal, ...lengths } = deps;
  const calls = `${gateway.simulatorUrl}/__simulator/calls`;
  await fetch(calls, { method: 'DELETE', signal });
  const order = { traffic: trafficOf(plan, gateway), connections: plan.connections, ...lengths };
  const { load, usage } = await measure(order, { ...gateway.pids, store: storePid }, signal);
  const stats = (await (await fetch(`${calls}/stats`, { signal })).json()) as CallStats;
  await gateway.answersOne();
  return { ...plan, load, usage, maxAtProvider: stats.providers.openai?.peakInFlight ?? 0 };
}

interface CallStats {
  providers: { openai?: { peakInFlight: number } };
}

/** What the requests of a run look like. */
export function trafficOf(
  { target, latencyMs }: Pick<RunPlan, 'target' | 'latencyMs'>,
  gateway: Gateway,
): Traffic {
  const model = latencyMs === 0 ? 'sim-echo' : `sim-latency-${latencyMs}`;
  if (target !== 'simulator') {
    const key = target === 'stored chat' && { 'Idempotency-Key': '{unique}' };
    return {
      ...to(gateway.chatUrl),
      headers: { ...chatHeaders, 'X-LLM-Model': model, ...key },
      bodies: [JSON.stringify({ messages })],
      expected: { status: 200, body: { kind: 'object', fields: ['response'] } },
    };
  }
  return {
    ...to(`${gateway.simulatorUrl}/v1/chat/completions`),
    headers: { Authorization: 'Bearer simulator', 'Content-Type': 'application/json' },
    bodies: [JSON.stringify({ model, messages })],
    expected: { status: 200, body: { kind: 'object', fields: ['choices'] } },
  };
}

function to(url: string): Pick<Traffic, 'method' | 'origin' | 'targets'> {
  const { origin, pathname } = new URL(url);
  return { method: 'POST', origin, targets: [{ path: pathname }] };
}
