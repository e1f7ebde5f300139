import { Lifecycle } from '../../shared/runtime/lifecycle.js';
import type { Log } from '../../shared/runtime/log.js';
import { openGateway, openSimulator } from './gateway.js';
import type { Options } from './options.js';
import type { Series } from './results.js';
import { doRun, type Run, type RunPlan } from './runs.js';
import type { StoreChoice } from './store.js';

interface SeriesDeps {
  store: StoreChoice;
  plans: readonly RunPlan[];
  seconds: number;
  /** Folder for logs and the store's files. */
  dir: string;
  outer: Lifecycle;
  log: Log;
  onRun(run: Run): void;
}

/** Once, unmeasured: code that Node compiles late must not count against the first runs. */
export const heating: RunPlan = { target: 'chat', latencyMs: 0, connections: 32 };
const heatingSeconds = 3;

/** Starts everything on one store, does the runs, and stops everything again. */
export async function runSeries({
  store,
  plans,
  seconds,
  dir,
  outer,
  log,
  onRun,
}: SeriesDeps): Promise<Series> {
  const lifecycle = outer.opened(store.name, new Lifecycle(log), (open) => open.close());
  const running = await store.open(lifecycle, dir);
  const simulator = await openSimulator(lifecycle, dir);
  const gateway = await openGateway({ store: running, simulator, lifecycle, dir });
  const deps = { gateway, store: running, signal: lifecycle.stopping };
  const guarded = (plan: RunPlan, length: number) =>
    Promise.race([doRun(plan, { ...deps, seconds: length }), gateway.failed]);
  await guarded(heating, heatingSeconds);
  const runs: Run[] = [];
  for (const plan of plans) {
    const run = await guarded(plan, seconds);
    runs.push(run);
    onRun(run);
  }
  await lifecycle.close();
  return { store: store.name, runs };
}

/** The runs on each store: for each time of the provider the simulator alone, then all numbers of connections. */
export function planRuns({ latenciesMs, connections }: Options): RunPlan[] {
  return latenciesMs.flatMap((latencyMs) => [
    ...(connections.includes(1) ? [{ target: 'simulator' as const, latencyMs, connections: 1 }] : []),
    ...connections.map((count) => ({ target: 'chat' as const, latencyMs, connections: count })),
  ]);
}
