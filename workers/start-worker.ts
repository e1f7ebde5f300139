import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { type Config, namesSet } from '../shared/config/config.js';
import { configuredSettings, poolSettings } from '../shared/config/pool-settings.js';
import {
  credentialVariables,
  hasCredentials,
  isBesideReal,
  isSimulated,
} from '../shared/config/provider-credentials.js';
import type { ProviderId } from '../shared/contract.js';
import { openInstruments, type WorkerInstruments } from '../shared/metrics/instruments.js';
import { workerMetrics } from '../shared/metrics/metrics.js';
import { startPruner } from '../shared/queue/pruner.js';
import type { QueueStore } from '../shared/queue/queue-store.js';
import { openRelay, type Relay } from '../shared/queue/relay.js';
import { openQueueStore } from '../shared/queue/stores/open.js';
import { whenReady } from '../shared/queue/when-ready.js';
import { Lifecycle } from '../shared/runtime/lifecycle.js';
import { createLog, type Log } from '../shared/runtime/log.js';
import { openTracing } from '../shared/runtime/open-tracing.js';
import { notifyParent } from '../shared/runtime/program.js';
import { release } from '../shared/runtime/release.js';
import type { Tracing } from '../shared/runtime/tracing.js';
import { openHealthServer } from './health-server.js';
import { DeltaPublisher } from './job/delta-publisher.js';
import { LostCallers } from './job/lost-callers.js';
import { NextAttempts } from './job/next-attempt.js';
import { RunningJobs } from './job/running-jobs.js';
import { Heartbeat } from './pool/heartbeat.js';
import { LiveSettings } from './pool/live-settings.js';
import { Pool } from './pool/pool.js';
import { SettingsFollower } from './pool/settings-follower.js';
import { openProvider } from './providers/provider-settings.js';

/** Time after the grace period to close everything else; an unavailable store takes a second at each step. */
const closingMs = 5000;
/** A relay over PostgreSQL carries a tenth of the messages. */
const deltaWindowMs = { redis: 20, postgres: 50 };
/** A store that is ready whenever it is asked and still refuses so often is not what is wrong. */
const maxTriesToOpen = 20;

/** Runs the configured pools until this process gets a signal to stop. */
export async function work(config: Config): Promise<void> {
  const log = createLog({ program: 'worker', level: config.LOG_LEVEL });
  log.info({ release, node: process.version }, 'starting');
  const lifecycle = new Lifecycle(log);
  lifecycle.closeOnSignals({ graceMs: config.SHUTDOWN_GRACE_MS + closingMs });

  const tracing = await openTracing({ config, program: 'worker', log });
  lifecycle.opened('tracing', tracing, (open) => open?.close());
  const store = lifecycle.opened('queue store', openQueueStore(config, log), (open) => open.close());
  const instruments = openInstruments(workerMetrics);
  instruments.metrics.buildInfo.set({ release }, 1);
  let pools: Pool[] | undefined;
  await openHealthServer({ config, store, instruments, lifecycle, isWorking: () => pools !== undefined });
  if (!(await store.whenReady(lifecycle.stopping))) return;
  lifecycle.opened('pruner', startPruner({ store, log }), (pruner) => pruner.stop());
  pools = await startPools({ config, store, instruments, tracing, log, lifecycle }).catch((error) => {
    if (lifecycle.stopping.aborted) return [];
    throw error;
  });
  if (lifecycle.stopping.aborted) return;
  notifyParent({ type: 'ready' });
  log.info({ pools: pools.map(({ id }) => id), queue: store.kind }, 'working');
}

interface StartDeps {
  config: Config;
  store: QueueStore;
  instruments: WorkerInstruments;
  tracing: Tracing | undefined;
  log: Log;
  lifecycle: Lifecycle;
}

async function startPools(deps: StartDeps): Promise<Pool[]> {
  const { config, store, instruments, tracing, log, lifecycle } = deps;
  const workerName = `${hostname().replaceAll(/[^A-Za-z0-9-]/g, '-')}-${process.pid}-${randomUUID().slice(0, 8)}`;
  const relay = await openRelayWhenReady({ store, log, lifecycle }, workerName);
  const ids = config.WORKER_PROVIDERS.filter((id) => runsHere(config, id, log));
  // All are loaded, and their release is registered, before the first takes a job.
  const providers = await Promise.all(ids.map((id) => openProvider(id, config)));
  const nextAttempts = lifecycle.opened('fallback', new NextAttempts({ store, log }), (open) => open.close());
  const settings = new Map(
    ids.map((id) => [id, new LiveSettings(poolSettings(config, id), configuredSettings(config, id))]),
  );
  const jobs = new RunningJobs();
  const deltas = new DeltaPublisher({ jobs, relay, windowMs: deltaWindowMs[store.kind], log });
  // Both go on until the pools have stopped.
  await followSettings(settings, { store, relay, jobs, log, lifecycle });
  const lostCallers = new LostCallers({ jobs, relay, now: store.now, log });
  lifecycle.opened('lost callers', lostCallers, (open) => open.stop()).start();
  const heartbeat = new Heartbeat({ relay, worker: workerName, log });
  const starting: Promise<Pool>[] = [];
  const grace = { graceMs: config.SHUTDOWN_GRACE_MS, streamGraceMs: config.STREAM_GRACE_MS };
  lifecycle.opened('pools', starting, async () => {
    await Promise.all(starting.map(async (pool) => (await pool).stop(grace)));
  });
  for (const provider of providers) {
    const own = settings.get(provider.id) ?? new LiveSettings(poolSettings(config, provider.id));
    const shared = {
      config,
      store,
      relay,
      jobs,
      deltas,
      nextAttempts,
      heartbeat,
      workerName,
      instruments,
      tracing,
      log,
    };
    const pool = new Pool({ provider, settings: own, ...shared });
    starting.push(pool.start().then(() => pool));
  }
  return Promise.all(starting);
}

/** Resolves once the settings are those that operators have made: a pool that is paused must not take a job. */
async function followSettings(
  settings: ReadonlyMap<ProviderId, LiveSettings>,
  {
    store,
    relay,
    jobs,
    log,
    lifecycle,
  }: Pick<StartDeps, 'store' | 'log' | 'lifecycle'> & { relay: Relay; jobs: RunningJobs },
): Promise<void> {
  const follower = new SettingsFollower({ settings, records: store.records, relay, jobs, log });
  lifecycle.opened('settings', follower, (open) => open.stop());
  await whenReady(() => follower.start(), {
    store,
    signal: lifecycle.stopping,
    log,
    maxTries: maxTriesToOpen,
  });
}

/** In PostgreSQL opening the relay and subscribing fail while the store is unavailable; queues and workers wait. */
async function openRelayWhenReady(
  { store, log, lifecycle }: Pick<StartDeps, 'store' | 'log' | 'lifecycle'>,
  name: string,
): Promise<Relay> {
  const deps = { store, signal: lifecycle.stopping, log, maxTries: maxTriesToOpen };
  const opened = await whenReady(() => openRelay(store, { name, log }), deps);
  const relay = lifecycle.opened('relay', opened, (open) => open.close());
  return { ...relay, subscribe: (...topic) => whenReady(() => relay.subscribe(...topic), deps) };
}

function runsHere(config: Config, id: ProviderId, log: Log): boolean {
  const names = namesSet(config);
  if (hasCredentials(names, id)) return true;
  const simulated = isSimulated(names, id);
  const message = simulated
    ? 'simulated: no credentials'
    : `no pool: no credentials${isBesideReal(names) ? ', and beside real providers nobody is simulated' : ''}`;
  log.warn({ provider: id, missing: credentialVariables[id] }, message);
  return simulated;
}
