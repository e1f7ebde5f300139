import { chatHeaders, type Gateway, messages } from './gateway.js';
import { type LoadOrder, type LoadResult, runLoad } from './load.js';
import { type PartPids, startMeter, type Usage } from './usage.js';

/** One run to do. */
export interface RunPlan {
  /** The chat API, or the simulator without anything of ours before it. */
  readonly target: 'chat' | 'simulator';
  /** How long the simulated provider takes. */
  readonly latencyMs: number;
  readonly connections: number;
}

/** One run that was done. */
export interface Run extends RunPlan {
  readonly load: LoadResult;
  readonly usage: Usage;
  /** Calls that the simulator had open at once, from the beginning of the warm-up. */
  readonly mostAtProvider: number;
}

export const warmUpSeconds = 2;
export const timeoutSeconds = 10;

interface RunDeps {
  gateway: Gateway;
  storePid: number | undefined;
  seconds: number;
  signal: AbortSignal;
}

/** Does one run, and waits until the requests that its end has cut off are dealt with. */
export async function doRun(plan: RunPlan, { gateway, storePid, seconds, signal }: RunDeps): Promise<Run> {
  const calls = `${gateway.simulatorUrl}/__simulator/calls`;
  await fetch(calls, { method: 'DELETE', signal });
  const order = {
    ...requestOf(plan, gateway),
    connections: plan.connections,
    warmUpSeconds,
    seconds,
    timeoutSeconds,
  };
  const { load, usage } = await measure(order, { ...gateway.pids, store: storePid }, signal);
  const stats = (await (await fetch(`${calls}/stats`, { signal })).json()) as CallStats;
  await gateway.answersOne();
  return { ...plan, load, usage, mostAtProvider: stats.providers.openai?.peakInFlight ?? 0 };
}

interface CallStats {
  providers: { openai?: { peakInFlight: number } };
}

function requestOf(
  { target, latencyMs }: RunPlan,
  gateway: Gateway,
): Pick<LoadOrder, 'url' | 'headers' | 'body'> {
  const model = latencyMs === 0 ? 'sim-echo' : `sim-latency-${latencyMs}`;
  if (target === 'chat') {
    const headers = { ...chatHeaders, 'X-LLM-Model': model };
    return { url: gateway.chatUrl, headers, body: JSON.stringify({ messages }) };
  }
  return {
    url: `${gateway.simulatorUrl}/v1/chat/completions`,
    headers: { Authorization: 'Bearer simulator', 'Content-Type': 'application/json' },
    body: JSON.stringify({ model, messages }),
  };
}

const notMeasured: Usage = { parts: {}, machineBusy: Number.NaN, othersBusy: Number.NaN };

async function measure(
  order: LoadOrder,
  pids: PartPids,
  signal: AbortSignal,
): Promise<{ load: LoadResult; usage: Usage }> {
  let meter: ReturnType<typeof startMeter> | undefined;
  let usage: Usage | undefined;
  const onMeasured = () => {
    usage = meter?.stop();
    meter = undefined;
  };
  try {
    const load = await runLoad(order, {
      onMeasuring: (pid) => {
        meter = startMeter({ ...pids, load: pid });
      },
      onMeasured,
      signal,
    });
    return { load, usage: usage ?? notMeasured };
  } finally {
    onMeasured();
  }
}
