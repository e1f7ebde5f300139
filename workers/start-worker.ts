import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { hostname } from 'node:os';
import { type Config, namesSet } from '../shared/config/config.js';
import { configuredSettings, poolConfig } from '../shared/config/pool-config.js';
import {
  credentialVariables,
  hasCredentials,
  isBesideReal,
  isSimulated,
} from '../shared/config/provider-credentials.js';
import type { ProviderId } from '../shared/contracts/contract.js';
import type { Turn } from '../shared/conversation.js';
import { JsonThread } from '../shared/json/json-thread.js';
import { openInstruments, type WorkerInstruments } from '../shared/metrics/instruments.js';
import { workerMetrics } from '../shared/metrics/metrics.js';
import { readInBase64, readTexts, withImages } from '../shared/queue/blobs.js';
import { closeChannels, openChannels } from '../shared/queue/channels.js';
import { LedgerWriter } from '../shared/queue/ledger-writer.js';
import { startPruner } from '../shared/queue/pruner.js';
import { type QueueStore, reasonOf, whenReady } from '../shared/queue/queue-store.js';
import type { Relay } from '../shared/queue/relay.js';
import { openQueueStore } from '../shared/queue/stores/open.js';
import { Lifecycle } from '../shared/runtime/lifecycle.js';
import { createLog, type Log } from '../shared/runtime/log.js';
import { openTracing } from '../shared/runtime/open-tracing.js';
import { explainListenError, notifyParent, release } from '../shared/runtime/program.js';
import type { Tracing } from '../shared/runtime/tracing.js';
import { isRebound } from '../shared/urls/hosts.js';
import { ImageRoom } from './gate/image-room.js';
import type { CallChainDeps } from './job/call-chain.js';
import { DeltaPublisher } from './job/delta-publisher.js';
import { LostCallers } from './job/lost-callers.js';
import { NextAttempts } from './job/next-attempt.js';
import { RunningJobs } from './job/running-jobs.js';
import { Heartbeat } from './pool/heartbeat.js';
import { LiveSettings, SettingsFollower } from './pool/live-settings.js';
import { Pool } from './pool/pool.js';
import type { PoolWorkerTools } from './pool/pool-worker.js';
import { openProvider } from './providers/provider-settings.js';

/** Time after the grace period to close everything else; an unavailable store takes a second at each step. */
const closingMs = 5000;
/** Images that the calls of this process take at once; without any it takes 350 MB, of 2 GiB in the manifests. */
const maxImageBytes = 402_653_184;
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
  const instruments = openInstruments(workerMetrics, { ofProcess: true });
  instruments.metrics.buildInfo.set({ release }, 1);
  let pools: Pool[] | undefined;
  const deps = { config, store, instruments, tracing, log, lifecycle };
  await openHealthServer(deps, () => pools !== undefined);
  if (!(await store.whenReady(lifecycle.stopping))) return;
  lifecycle.opened('pruner', startPruner({ store, log }), (pruner) => pruner.stop());
  pools = await startPools(deps).catch((error) => {
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
  const { config, store, instruments, log, lifecycle } = deps;
  const workerName = `${hostname().replaceAll(/[^A-Za-z0-9-]/g, '-')}-${process.pid}-${randomUUID().slice(0, 8)}`;
  const ready = { store, signal: lifecycle.stopping, log, maxTries: maxTriesToOpen };
  const channels = await whenReady(() => openChannels(store, { name: workerName, log }), ready);
  const { queues } = lifecycle.opened('channels', channels, closeChannels);
  // In PostgreSQL subscribing fails while the store is unavailable.
  const subscribe: Relay['subscribe'] = (...topic) =>
    whenReady(() => channels.relay.subscribe(...topic), ready);
  const relay = { ...channels.relay, subscribe };
  const ids = config.WORKER_PROVIDERS.filter((id) => runsHere(config, id, log));
  // All are loaded, and their release is registered, before the first takes a job.
  const providers = await Promise.all(ids.map((id) => openProvider(id, config)));
  const nextAttempts = new NextAttempts({ store, queues, log });
  lifecycle.opened('fallback', nextAttempts, (open) => open.close());
  const parts = providers.map((provider) => ({ provider, settings: openSettings(config, provider.id) }));
  const settings = new Map(parts.map((part) => [part.provider.id, part.settings]));
  const jobs = new RunningJobs();
  const deltas = new DeltaPublisher({ jobs, relay, windowMs: deltaWindowMs[store.kind], log });
  // Both go on until the pools have stopped.
  const follower = new SettingsFollower({ settings, records: store.records, relay, jobs, log });
  lifecycle.opened('settings', follower, (open) => open.stop());
  // A pool that is paused must not take a job.
  await whenReady(() => follower.start(), ready);
  const lostCallers = new LostCallers({ jobs, relay, now: store.now, log });
  lifecycle.opened('lost callers', lostCallers, (open) => open.stop()).start();
  const heartbeat = new Heartbeat({ relay, worker: workerName, log });
  const starting: Promise<Pool>[] = [];
  const grace = { graceMs: config.SHUTDOWN_GRACE_MS, streamGraceMs: config.STREAM_GRACE_MS };
  lifecycle.opened('pools', starting, async () => {
    await Promise.all(starting.map(async (pool) => (await pool).stop(grace)));
  });
  const imageRoom = new ImageRoom({ maxBytes: maxImageBytes });
  const thread = new JsonThread();
  lifecycle.opened('JSON thread', thread, (open) => open.end());
  const fill: CallChainDeps['fill'] = (text, { mark, texts }) => thread.fill({ text, mark, texts });
  const readJobTexts: PoolWorkerTools['readTexts'] = ({ chatId }, job) =>
    readTexts({ blobs: store.blobs, parse: (text) => parseIn(thread, text) }, chatId, job);
  const loadImages = (turns: readonly Turn[], user?: string) => withImages(store.blobs, turns, user);
  const loadBlobs: CallChainDeps['loadBlobs'] = (blobs, user = '') => readInBase64(store.blobs, user, blobs);
  const ledger = new LedgerWriter({ outbox: store.outbox, metrics: instruments.metrics, log });
  const shared = {
    ...deps,
    relay,
    ledger,
    queues,
    jobs,
    deltas,
    nextAttempts,
    heartbeat,
    workerName,
    imageRoom,
  };
  for (const part of parts) {
    const reading = { withImages: loadImages, loadBlobs, fill, readTexts: readJobTexts };
    const pool = new Pool({ ...shared, ...part, ...reading });
    starting.push(pool.start().then(() => pool));
  }
  return Promise.all(starting);
}

/** The texts were written by an API process, which has checked them. */
async function parseIn(thread: JsonThread, text: Buffer): Promise<unknown> {
  const read = await thread.read(new Uint8Array(text), unlimited);
  if ('value' in read) return read.value;
  throw new Error('the texts of a job are no JSON');
}

const unlimited = { maxDepth: Number.POSITIVE_INFINITY, maxValues: Number.POSITIVE_INFINITY };

const openSettings = (config: Config, id: ProviderId): LiveSettings =>
  new LiveSettings(poolConfig(config, id), configuredSettings(config, id));

function runsHere(config: Config, id: ProviderId, log: Log): boolean {
  const names = namesSet(config);
  if (hasCredentials(names, id)) return true;
  const simulated = isSimulated(names, id);
  const message = simulated
    ? 'simulated: no credentials'
    : `no pool: no credentials${isBesideReal(names) ? '; no provider is simulated beside real ones' : ''}`;
  log.warn({ provider: id, missing: credentialVariables[id] }, message);
  return simulated;
}

/** Serves this worker's `/livez`, `/readyz` and `/metrics`; closed with the lifecycle. Throws without its port. */
async function openHealthServer(deps: StartDeps, isWorking: () => boolean): Promise<void> {
  const { config, store, instruments, lifecycle } = deps;
  const server = createServer((request, response) => {
    const answer = (status: number, body: object) =>
      response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
    if (request.url === '/livez') answer(200, { status: 'ok' });
    else if (request.url === '/metrics' && isRebound(request)) answer(421, { status: 'misdirected' });
    else if (request.url === '/metrics')
      void instruments.scrape().then(
        ({ contentType, text }) =>
          response.writeHead(200, { 'Content-Type': contentType, 'Cache-Control': 'no-store' }).end(text),
        () => answer(500, { status: 'failing' }),
      );
    else if (request.url !== '/readyz') answer(404, { status: 'not found' });
    else if (lifecycle.stopping.aborted) answer(503, { status: 'draining' });
    else {
      void store.check().then(
        () => answer(isWorking() ? 200 : 503, describe(store, isWorking() ? 'ok' : 'starting')),
        (error: unknown) => answer(503, describe(store, 'failing', reasonOf(error))),
      );
    }
  });
  const address = { variable: 'WORKER_PORT', port: config.WORKER_PORT, host: config.HOST };
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => reject(explainListenError(error, address)));
    server.listen(address.port, address.host, resolve);
  });
  notifyParent({ type: 'listening', port: (server.address() as AddressInfo).port });
  lifecycle.opened('health server', server, (open) => {
    open.closeAllConnections();
    return new Promise<void>((resolve) => void open.close(() => resolve()));
  });
}

const describe = (store: QueueStore, status: string, detail?: string): object => ({
  status,
  release,
  checks: { queue: { store: store.kind, status: detail ? 'failing' : 'ok', ...(detail && { detail }) } },
});
