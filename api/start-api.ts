import type { AddressInfo } from 'node:net';
import { type Database, openDatabase } from '../db/database/client.js';
import { createPostStore } from '../db/posts/posts.js';
import type { Config } from '../shared/config/config.js';
import { type ApiInstruments, openInstruments } from '../shared/metrics/instruments.js';
import { apiMetrics } from '../shared/metrics/metrics.js';
import type { Outcome } from '../shared/protocol/outcome.js';
import { startPruner } from '../shared/queue/pruner.js';
import type { QueueStore } from '../shared/queue/queue-store.js';
import { openQueueStore } from '../shared/queue/stores/open.js';
import { Lifecycle } from '../shared/runtime/lifecycle.js';
import { createLog, type Log } from '../shared/runtime/log.js';
import { explainListenError, type ListenAddress, notifyParent } from '../shared/runtime/program.js';
import { release } from '../shared/runtime/release.js';
import { openAuthentication, refuseWithoutCredentials } from './access/open-authentication.js';
import { type AppDeps, createApp } from './app.js';
import { createFeeds } from './blog/feeds.js';
import { createPostExport } from './blog/post-page.js';
import { createMarkdownRenderer } from './blog/rendering/markdown.js';
import { createRenderedPosts } from './blog/rendering/rendered-posts.js';
import { createChatService } from './chat/chat-service.js';
import { type JobClient, openJobClient } from './chat/jobs/job-client.js';
import { createPendingReplies, type PendingReplies } from './chat/jobs/pending-replies.js';
import { createStoredChats } from './chat/stored-chats.js';
import { type ApiServer, createApiServer } from './http/server.js';
import { createMetricsApp, type MetricsAppDeps } from './metrics-app.js';
import { openWhenReady } from './open-when-ready.js';
import { createQueueGauges } from './operations/queue-gauges.js';

/** Time after the grace for everything else to close; a store that is gone takes a second at each step. */
const closingMs = 5000;
/** What a request is told that outlasts the grace. */
const cutShort: Outcome = { kind: 'failed', code: 'internal', retryable: true, queueMs: 0, providerMs: 0 };

/** Serves until this process is told to stop. Throws `StartupError` when nobody could use it. */
export async function serveApi(config: Config): Promise<void> {
  const log = createLog({ program: 'api', level: config.LOG_LEVEL });
  log.info({ release, node: process.version }, 'starting');
  const lifecycle = new Lifecycle(log);
  lifecycle.closeOnSignals({ graceMs: config.SHUTDOWN_GRACE_MS + closingMs });

  const database = lifecycle.opened(
    'database',
    openDatabase({ url: config.DATABASE_URL ?? '', poolSize: config.DATABASE_POOL_SIZE, log }),
    (open) => open.close(),
  );
  await refuseWithoutCredentials(config, { database, log });
  const authentication = openAuthentication(config, { database, log, lifecycle });

  const store = lifecycle.opened('queue store', openQueueStore(config, log), (open) => open.close());
  const instruments = openInstruments(apiMetrics);
  instruments.startAtZero();
  instruments.metrics.buildInfo.set({ release }, 1);
  const { metrics } = instruments;
  const pendingReplies = createPendingReplies(store.now);
  const link = linkWhenReady({
    config,
    store,
    pendingReplies,
    metrics,
    log,
    lifecycle,
    others: authentication.attempted,
  });
  instruments.onScrape(createQueueGauges({ metrics, link, now: store.now }).refresh);
  const resultTtlMs = config.CHAT_RESULT_TTL_S * 1000;
  const storedChats = createStoredChats({ records: store.records, link, resultTtlMs, now: store.now });
  const chatService = createChatService({
    link,
    pendingReplies,
    storedChats,
    timeoutMs: config.CHAT_TIMEOUT_MS,
    maxMs: config.CHAT_MAX_WAIT_S * 1000,
    now: store.now,
  });

  const draining = () => lifecycle.stopping.aborted;
  const watched = { store, database, linked: () => link() !== undefined, draining, instruments, log };
  const metricsPort = await serveMetrics(config, watched, lifecycle);
  const app = createApp({
    config,
    chatService,
    storedChats,
    ...blogParts(config, { database, lifecycle, log }),
    authentication,
    ...watched,
    places: () => link()?.pools.places(),
  });
  const api = lifecycle.opened('http server', createApiServer({ app, draining }), (open) =>
    open.close({ graceMs: config.SHUTDOWN_GRACE_MS, onGraceOver: () => pendingReplies.settleAll(cutShort) }),
  );
  const port = await listen(api, { variable: 'PORT', port: config.PORT, host: config.HOST });
  notifyParent({ type: 'listening', port });
  log.info({ port, ...(metricsPort !== undefined && { metricsPort }), queue: store.kind }, 'listening');
}

/** Gives the port that was listened on. Throws `StartupError` when somebody else does. */
async function listen(server: ApiServer, address: ListenAddress): Promise<number> {
  const listening = await server.listen(address.port, address.host).catch((error: unknown) => {
    throw explainListenError(error, address);
  });
  return (listening.address() as AddressInfo).port;
}

/** Opened before the API, so that it is closed after it: also the end of a process is watched. */
async function serveMetrics(
  { METRICS_PORT: port, HOST: host }: Config,
  deps: MetricsAppDeps,
  lifecycle: Lifecycle,
): Promise<number | undefined> {
  if (port === undefined) return undefined;
  const { draining } = deps;
  const server = createApiServer({ app: createMetricsApp(deps), draining });
  lifecycle.opened('metrics server', server, (open) => open.close({ graceMs: 0, onGraceOver: () => {} }));
  return listen(server, { variable: 'METRICS_PORT', port, host });
}

interface BlogParts {
  database: Database;
  lifecycle: Lifecycle;
  log: Log;
}

function blogParts(
  config: Config,
  { database, lifecycle, log }: BlogParts,
): Pick<AppDeps, 'blogs' | 'feeds'> {
  const posts = createPostStore(database);
  const renderer = lifecycle.opened('renderer', createMarkdownRenderer(), (open) => open.close());
  const render = createRenderedPosts({ renderer, log });
  const basePath = new URL(config.BLOG_BASE_URL).pathname.replace(/\/$/, '');
  const pages = createPostExport({
    blogTitle: config.BLOG_TITLE,
    images: config.BLOG_IMAGES,
    render,
  });
  const feeds = createFeeds({ title: config.BLOG_TITLE, baseUrl: config.BLOG_BASE_URL, render, posts });
  return { blogs: { posts, basePath, pages }, feeds: { feeds } };
}

interface LinkingDeps {
  config: Config;
  store: QueueStore;
  pendingReplies: PendingReplies;
  metrics: ApiInstruments['metrics'];
  log: Log;
  lifecycle: Lifecycle;
  /** What else has to be there before this process can serve. */
  others: Promise<void>;
}

/** The link is opened in the background: the process serves its health pages while the store is still away. */
function linkWhenReady(deps: LinkingDeps): () => JobClient | undefined {
  const { config, store, pendingReplies, metrics, log, lifecycle, others } = deps;
  let link: JobClient | undefined;
  const open = async () => {
    const openLink = () => openJobClient({ store, pendingReplies, metrics, log });
    link = await openWhenReady(openLink, { store, log, signal: lifecycle.stopping });
    if (link === undefined) return;
    const maxMs = Math.max(config.CHAT_TIMEOUT_MS, config.CHAT_MAX_WAIT_S * 1000);
    lifecycle.opened('upkeep', startPruner({ store, maxMs, log }), (upkeep) => upkeep.stop());
    log.info('queue linked');
    await others;
    notifyParent({ type: 'ready' });
  };
  const opening = open();
  lifecycle.opened('queue link', opening, async () => {
    await opening;
    await link?.close();
  });
  return () => link;
}
