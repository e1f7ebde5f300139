import { Lifecycle } from '../../../shared/runtime/lifecycle.js';
import type { Log } from '../../../shared/runtime/log.js';
import { type Gateway, openGateway, openSimulator } from '../gateway.js';
import { whyNotAnswered } from '../requests.js';
import { doRun, type Lengths, type Run, type RunPlan, trafficOf } from '../runs.js';
import type { RunningStore, StoreChoice } from '../store.js';
import type { Peer } from './portkey.js';
import { type Side, sides } from './sides.js';

/** So many callers, and so long a provider. */
export type Load = Pick<RunPlan, 'latencyMs' | 'connections'>;

/** What runs on a store, and beside it. */
export interface SidesDeps {
  store: StoreChoice;
  peer: Peer;
  /** Folder for logs and the store's files. */
  dir: string;
  outer: Lifecycle;
  log: Log;
  /** In our worker. */
  jobsAtOnce?: number;
}

/** All sides, each before the same simulator. */
export interface RunningSides {
  readonly gateway: Gateway;
  readonly store: RunningStore;
  /** Aborts when they are being closed. */
  readonly stopping: AbortSignal;
  run(side: Side, load: Load, lengths: Lengths): Promise<Run>;
  /** Why the side cannot be asked; undefined when it can. */
  whyNot(side: Side, load: Load): Promise<string | undefined>;
  close(): Promise<void>;
}

const targets = { quillgate: 'chat', portkey: 'portkey', simulator: 'simulator' } as const;

/** Starts ours on the store, and the simulator for it and the other gateway. */
export async function openSides({ store, peer, outer, log, ...deps }: SidesDeps): Promise<RunningSides> {
  const lifecycle = outer.opened(store.name, new Lifecycle(log), (open) => open.close());
  const running = await store.open(lifecycle, deps.dir);
  const simulator = await openSimulator(lifecycle, deps.dir);
  const gateway = await openGateway({ store: running, simulator, lifecycle, ...deps });
  const signal = lifecycle.stopping;
  const runDeps = { gateway, peer, store: running, signal };
  return {
    ...{ gateway, store: running, stopping: signal, close: () => lifecycle.close() },
    run: (side, load, lengths) => {
      const work = doRun({ target: targets[side], ...load }, { ...runDeps, ...lengths });
      return Promise.race([work, gateway.failed]);
    },
    whyNot: (side, load) => whyNotAnswered(trafficOf({ target: targets[side], ...load }, runDeps), signal),
  };
}

const heatingSeconds = 3;

/** Unmeasured: code that Node compiles late must not count against the first rounds. */
export async function heat({ run }: RunningSides, connections: number): Promise<void> {
  for (const side of sides) await run(side, { latencyMs: 0, connections }, { seconds: heatingSeconds });
}
