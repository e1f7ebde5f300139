import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Lifecycle } from '../../../shared/runtime/lifecycle.js';
import type { Log } from '../../../shared/runtime/log.js';
import { openGateway, openSimulator } from '../gateway.js';
import { measureIdle } from '../idle.js';
import { errorCount } from '../results.js';
import { doRun, type Run } from '../runs.js';
import { heating } from '../series.js';
import type { StoreChoice } from '../store.js';
import { countsBeyond, countsPer, type StoreCounts } from '../store-counts.js';
import { type Column, number, perSecondCell, table } from '../table.js';

/** What the store was asked with so many API processes. */
export interface ApiProcessesRun {
  readonly apis: number;
  /** Without requests. */
  readonly idlePerSecond: StoreCounts;
  /** For one request, beyond that. */
  readonly perRequest: StoreCounts;
  readonly perSecond: number;
  readonly errors: number;
}

/** Shared by all API processes, and not so many that the machine is busy: a busy one sends more in each message. */
export const load = { target: 'chat', latencyMs: 500, connections: 128 } as const;

const heatingSeconds = 3;

interface ApiProcessesDeps {
  /** One that counts. */
  store: StoreChoice;
  /** How many, one after the other, each with processes and a server of its own. */
  apis: readonly number[];
  seconds: number;
  dir: string;
  outer: Lifecycle;
  log: Log;
  onRun(run: ApiProcessesRun): void;
}

/** Sends the same load through one API process and through several. */
export async function runApiProcesses(deps: ApiProcessesDeps): Promise<ApiProcessesRun[]> {
  const runs: ApiProcessesRun[] = [];
  for (const apis of deps.apis) {
    const run = await runWith(apis, deps);
    runs.push(run);
    deps.onRun(run);
  }
  return runs;
}

async function runWith(
  apis: number,
  { store, seconds, outer, log, ...deps }: ApiProcessesDeps,
): Promise<ApiProcessesRun> {
  const dir = join(deps.dir, `api-processes-${apis}`);
  mkdirSync(dir);
  const lifecycle = outer.opened(`${apis} API processes`, new Lifecycle(log), (open) => open.close());
  const running = await store.open(lifecycle, dir);
  const simulator = await openSimulator(lifecycle, dir);
  const gateway = await openGateway({ store: running, simulator, lifecycle, dir, apis });
  const runDeps = { gateway, store: running, signal: lifecycle.stopping };
  await doRun(heating, { ...runDeps, seconds: heatingSeconds });
  const idle = await measureIdle(gateway, running, lifecycle.stopping);
  const run = await Promise.race([doRun(load, { ...runDeps, seconds }), gateway.failed]);
  await lifecycle.close();
  return figuresOf(apis, run, idle.store);
}

/** Throws when the store did not count. */
function figuresOf(
  apis: number,
  { load: { answers, seconds, errors }, counts }: Pick<Run, 'load' | 'counts'>,
  idlePerSecond: StoreCounts | undefined,
): ApiProcessesRun {
  if (counts === undefined || idlePerSecond === undefined) throw new Error('the store does not count');
  return {
    ...{ apis, idlePerSecond, perSecond: answers / seconds, errors: errorCount(errors) },
    perRequest: countsPer(countsBeyond(counts, idlePerSecond, seconds), answers),
  };
}

/** One run in one line, to watch the benchmark go. */
export const describeApiProcessesRun = ({ apis, perRequest, perSecond }: ApiProcessesRun): string =>
  `API processes ${apis}: ${perSecondCell(perSecond)} requests/s, ${number(perRequest.commands, 1)} commands per request\n`;

/** All of it as Markdown. */
export const describeApiProcesses = (runs: readonly ApiProcessesRun[]): string =>
  `What Redis was asked for one request beyond an idle second, and in an idle second; ${load.connections} connections in all, provider ` +
  `${load.latencyMs} ms.\n\n${table(columns, runs)}`;

const columns: readonly Column<ApiProcessesRun>[] = [
  ['API processes', ({ apis }) => number(apis)],
  ['requests/s', ({ perSecond }) => perSecondCell(perSecond)],
  ['errors', ({ errors }) => number(errors)],
  ['commands', ({ perRequest }) => number(perRequest.commands, 1)],
  ['scripts', ({ perRequest }) => number(perRequest.scripts, 2)],
  ['bytes in', ({ perRequest }) => number(perRequest.bytesIn)],
  ['bytes out', ({ perRequest }) => number(perRequest.bytesOut)],
  ['idle: commands', ({ idlePerSecond }) => number(idlePerSecond.commands)],
  ['scripts', ({ idlePerSecond }) => number(idlePerSecond.scripts, 1)],
  ['KB in', ({ idlePerSecond }) => number(idlePerSecond.bytesIn / 1000, 1)],
  ['KB out', ({ idlePerSecond }) => number(idlePerSecond.bytesOut / 1000, 1)],
];
