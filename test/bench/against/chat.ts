import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { ChildProgram } from '../../../dev/child-program.js';
import { Lifecycle } from '../../../shared/runtime/lifecycle.js';
import { type Gateway, openGateway, openSimulator } from '../gateway.js';
import type { Row } from '../interleaved/interleave.js';
import { titleOf } from '../report.js';
import { whyNotAnswered } from '../requests.js';
import { doRun, type RunPlan, trafficOf } from '../runs.js';
import { heating } from '../series.js';
import type { RunningStore, StoreChoice } from '../store.js';
import { type Compared, type ComparisonDeps, compareRows, figuresOf } from './comparison.js';
import type { Measured, Side } from './statistics.js';

interface ChatDeps extends ComparisonDeps {
  store: StoreChoice;
  plans: readonly RunPlan[];
}

/** One side's programs on a store of their own. */
interface RunningSide {
  readonly gateway: Gateway;
  readonly store: RunningStore;
}

const heatingSeconds = 3;

/** Compares the chat on one store: two gateways, each with a server of its own, before one simulator. */
export async function compareChat(deps: ChatDeps): Promise<Compared> {
  const { store, plans, outer, log } = deps;
  const lifecycle = outer.opened(store.name, new Lifecycle(log), (open) => open.close());
  const simulator = await openSimulator(lifecycle, deps.dir);
  const [baseline, candidate] = await Promise.all([
    openSide('baseline', { ...deps, lifecycle, simulator }),
    openSide('candidate', { ...deps, lifecycle, simulator }),
  ]);
  const running = { baseline, candidate };
  const run = (side: Side, plan: RunPlan, seconds: number) =>
    Promise.race([
      doRun(plan, {
        ...running[side],
        seconds,
        warmUpSeconds: deps.warmUpSeconds,
        signal: lifecycle.stopping,
      }),
      running.baseline.gateway.failed,
      running.candidate.gateway.failed,
    ]);
  await run('baseline', heating, heatingSeconds);
  await run('candidate', heating, heatingSeconds);
  const rows = plans.map(
    (plan): Row<Side, Measured> => ({
      title: `${titleOf(plan.target, store.name)}, provider ${plan.latencyMs} ms, callers ${plan.connections}`,
      whyNot: (side) => whyNotAnswered(trafficOf(plan, running[side]), lifecycle.stopping),
      measure: async (side) => figuresOf(await run(side, plan, deps.seconds)),
    }),
  );
  const compared = await compareRows(rows, deps);
  await lifecycle.close();
  return compared;
}

interface SideDeps extends ChatDeps {
  lifecycle: Lifecycle;
  simulator: ChildProgram;
}

async function openSide(side: Side, deps: SideDeps): Promise<RunningSide> {
  const { store, simulator, lifecycle, roots } = deps;
  const dir = join(deps.dir, side);
  mkdirSync(dir);
  const running = await store.open(lifecycle, dir);
  const checkout = roots[side];
  const gateway = await openGateway({ store: running, simulator, lifecycle, dir, checkout });
  return { gateway, store: running };
}

/** Callers of the row whose chats are kept. */
const keptConnections = 32;

/** The rows on each store: for each time of the provider all numbers of callers, and stored chats. */
export function planRows({
  latenciesMs,
  connections,
}: {
  latenciesMs: readonly number[];
  connections: readonly number[];
}): RunPlan[] {
  return latenciesMs.flatMap((latencyMs) => [
    ...connections.map((count) => ({ target: 'chat' as const, latencyMs, connections: count })),
    ...connections
      .filter((count) => count === keptConnections)
      .map((count) => ({ target: 'stored chat' as const, latencyMs, connections: count })),
  ]);
}
