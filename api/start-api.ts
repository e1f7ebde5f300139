import type { AddressInfo } from 'node:net';
import { type Database, openDatabase } from '../db/database/client.js';
import { createPostMap } from '../db/posts/post-lists.js';
import { PostStore } from '../db/posts/post-store.js';
import type { Config } from '../shared/config/config.js';
import { fallbackOf, foreignProviders, poolConfig } from '../shared/config/pool-config.js';
import { type ProviderId, providerIds } from '../shared/contracts/contract.js';
import { listModels } from '../shared/fleet/fleet.js';
import { FleetState } from '../shared/fleet/fleet-state.js';
import { type ApiInstruments, openInstruments } from '../shared/metrics/instruments.js';
import { apiMetrics } from '../shared/metrics/metrics.js';
import { openPrices, type Prices } from '../shared/prices/prices.js';
import { givenUpOutcome } from '../shared/protocol/outcome.js';
import { LedgerWriter, lostEntries } from '../shared/queue/ledger-writer.js';
import { type PrunerDeps, startPruner } from '../shared/queue/pruner.js';
import type { QueueStore } from '../shared/queue/queue-store.js';
import { openQueueStore } from '../shared/queue/stores/open.js';
import { Lifecycle } from '../shared/runtime/lifecycle.js';
import { createLog, type Log } from '../shared/runtime/log.js';
import { openTracing } from '../shared/runtime/open-tracing.js';
import { explainListenError, type ListenAddress, notifyParent, release } from '../shared/runtime/program.js';
import { closedInTime } from '../shared/runtime/retry.js';
import {
  environmentUsers,
  type OpenAuthentication,
  openAuthentication,
  refuseWithoutCredentials,
} from './access/authentication.js';
import { BytesInFlight } from './access/bytes-in-flight.js';
import { FleetEvents } from './admin/events.controller.js';
import { OperatorSettings, SettingsKeeper } from './admin/operator-settings.js';
import { startRetention } from './admin/retention.js';
import { createApp, createMetricsApp, type MetricsAppDeps } from './app.js';
import { blogOf } from './blog/blog-layout.js';
import { createFeeds } from './blog/feeds.controller.js';
import { createPostPages } from './blog/post-page.js';
import { createExcerpts } from './blog/rendering/excerpts.js';
import { createMarkdownRenderer } from './blog/rendering/markdown.js';
import { createPreview, createRenderedPosts } from './blog/rendering/rendered-posts.js';
import { ChatService } from './chat/chat-service.js';
import type { LiveChat } from './chat/live-chat.js';
import { LiveChats } from './chat/live-chats.js';
import { StoredAnswers } from './chat/stored-answers.js';
import { answerSizes, StoredChats } from './chat/stored-chats.js';
import { Uploads } from './chat/uploads.js';
import { maxInFlightOf, UserShares } from './chat/user-shares.js';
import { RemovedUsers } from './fleet-link/connection.js';
import { FleetLink } from './fleet-link/fleet-link.js';
import { ApiServer } from './http/server.js';
import { ChatRecorder } from './ledger/chat-recorder.js';
import { LedgerDrain } from './ledger/drain.js';
import { EndedChats } from './ledger/ended-chats.js';
import { SampleLog } from './ledger/sample-log.js';
import { observeOutbox } from './operations/outbox-gauges.js';
import { observeProviders, observeQueues } from './operations/queue-gauges.js';
import { Sitemap } from './site/front-page.js';
import { createProviderStates } from './site/provider-states.js';

/** Time after the grace for everything else to close; a store that is down takes a second at each step. */
const closingMs = 5000;

/** Serves until the process is asked to stop. Throws `StartupError` when no user could use the server. */
export async function serveApi(config: Config): Promise<void> {
  const log = createLog({ program: 'api', level: config.LOG_LEVEL });
  log.info({ release, node: process.version }, 'starting');
  const lifecycle = new Lifecycle(log);
  lifecycle.closeOnSignals({ graceMs: config.SHUTDOWN_GRACE_MS + closingMs });

  const tracing = await openTracing({ config, program: 'api', log });
  lifecycle.opened('tracing', tracing, (open) => open?.close());
  const { DATABASE_URL: url = '', DATABASE_POOL_SIZE: poolSize } = config;
  const database = lifecycle.opened('database', openDatabase({ url, poolSize, log }), (open) => open.close());
  await refuseWithoutCredentials(config, { database, log });
  const authentication = openAuthentication(config, { database, log, lifecycle });
  const store = lifecycle.opened('queue store', openQueueStore(config, log), (open) => open.close());
  const instruments = openApiInstruments();
  const { metrics } = instruments;
  const prices = openConfiguredPrices(config, log);
  const ledger = lifecycle.opened(
    'ledger',
    new LedgerWriter({ outbox: store.outbox, metrics, log }),
    (open) => closedInTime(open.flush()),
  );
  const linkDeps = { store, metrics, ledger, log };
  const link = lifecycle.opened('fleet link', new FleetLink(linkDeps), (open) => open.close());
  const deps = { database, store, authentication, instruments, link, ledger, prices, log, lifecycle };
  const { chats, ...chat } = openChat(config, deps);

  const draining = () => lifecycle.stopping.aborted;
  const watched = { store, database, link, draining, instruments, log };
  const metricsPort = await serveMetrics(config, watched, lifecycle);
  const models = () => listModels(link.heartbeats);
  const providerStates = createProviderStates({ heartbeats: link.heartbeats, checkStore: store.check });
  const fleet = new FleetState({ store, source: link });
  observeQueues({ instruments, fleet, now: store.now });
  const settings = new OperatorSettings({ config, database, source: link });
  observeOutbox(instruments, store);
  const samples = new SampleLog({ readLoads: () => fleet.readLoads() });
  lifecycle.opened('samples', samples.start(), (open) => open.stop());
  const events = new FleetEvents({ fleet, stopping: lifecycle.stopping });
  const { preview, ...blog } = openBlog(config, deps);
  const { directory: sessions } = authentication;
  const queues = { queueOf: (id: ProviderId) => link.queueOf(id), store };
  const accounts = { reloadAccounts: () => sessions.reload(), environmentUsers: environmentUsers(config) };
  const findUnfinished = (id: string) => link.describe(id);
  const admin = {
    ...accounts,
    findUnfinished,
    database,
    fleet,
    settings,
    events,
    samples,
    sessions,
    preview,
    queues,
  };
  const parts = { ...chat, ...blog, authentication, models, providerStates, admin };
  const app = createApp({ config, ...parts, ...watched, tracing });
  const server = lifecycle.opened('http server', new ApiServer({ app, draining }), (open) =>
    closeServer(open, config, { chats, link }),
  );
  const port = await listen(server, { variable: 'PORT', port: config.PORT, host: config.HOST });
  notifyParent({ type: 'listening', port });
  log.info({ port, ...(metricsPort !== undefined && { metricsPort }), queue: store.kind }, 'listening');
}

/** A request that outlasts its grace ends with a retryable failure; its job is cancelled unless it is stored. */
function closeServer(
  server: ApiServer,
  { SHUTDOWN_GRACE_MS: graceMs, STREAM_GRACE_MS: streamGraceMs }: Config,
  { chats, link }: { chats: LiveChats; link: FleetLink },
): Promise<void> {
  const end = (unfinished: readonly LiveChat[]) => {
    for (const { id, job, isStored } of unfinished) {
      chats.onOutcome(id, givenUpOutcome);
      // Its reply can no longer be read.
      if (!isStored) link.cancel(job);
    }
  };
  setTimeout(() => end(chats.all().filter(({ isStreamed }) => isStreamed)), streamGraceMs).unref();
  return server.close({ graceMs, onGraceOver: () => end(chats.all()) });
}

/** Names the configured models whose calls will have unknown costs. Throws `ConfigError` for a bad file of prices. */
function openConfiguredPrices(config: Config, log: Log): Prices {
  const prices = openPrices({ file: config.PRICES_FILE, foreign: new Set(foreignProviders(config)) });
  const models = providerIds.flatMap((provider) => {
    const { model } = poolConfig(config, provider);
    return model === undefined || prices.isKnown(provider, model) ? [] : { provider, model };
  });
  if (models.length > 0) log.warn({ models }, 'models without a price: PRICES_FILE can name it');
  return prices;
}

function openApiInstruments(): ApiInstruments {
  const instruments = openInstruments(apiMetrics, { ofProcess: true });
  instruments.startAtZero();
  instruments.metrics.buildInfo.set({ release }, 1);
  return instruments;
}

interface ApiDeps {
  database: Database;
  store: QueueStore;
  authentication: OpenAuthentication;
  instruments: ApiInstruments;
  link: FleetLink;
  ledger: LedgerWriter;
  prices: Prices;
  log: Log;
  lifecycle: Lifecycle;
}

function openChat(config: Config, deps: ApiDeps) {
  const { store, instruments, link, ledger, authentication, log, lifecycle } = deps;
  const { pools } = link;
  const { now } = store;
  const chats = new LiveChats(now);
  const isOpen = (provider: ProviderId) => pools.settings.of(provider).intake === undefined;
  const ended = new EndedChats({ isOpen });
  void connect(config, { chats, ended }, deps);
  const bytesInFlight = new BytesInFlight({
    perUser: config.CHAT_USER_MAX_QUEUED_BYTES,
    inAll: config.CHAT_MAX_QUEUED_BYTES,
  });
  const shares = new UserShares({
    maxInFlight: () => config.CHAT_USER_MAX_IN_FLIGHT ?? maxInFlightOf(pools.totalConcurrency()),
    maxPerMinute: config.CHAT_USER_MAX_PER_MINUTE,
    // A client whose streams all break off at once comes to far fewer.
    maxJoins: 100,
    bytesInFlight,
  });
  const recorder = new ChatRecorder({ ledger, ended, log, now });
  for (const listener of [shares, recorder, answerSizes]) chats.listen(listener);
  observeProviders(instruments, link);
  const answers = new StoredAnswers(now);
  const uploads = new Uploads({ blobs: store.blobs, room: answers, bytesInFlight, now });
  const storedChats = new StoredChats({
    records: store.records,
    link,
    resultTtlMs: config.CHAT_RESULT_TTL_S * 1000,
    answers,
    now,
  });
  const cancelSuspended = () => storedChats.cancelSuspended(chats.all(), authentication.directory);
  lifecycle.opened('suspended users', authentication.directory.onLoad(cancelSuspended), (stop) => stop());
  const chatService = new ChatService({
    link,
    chats,
    shares,
    storedChats,
    uploads,
    timeoutMs: config.CHAT_TIMEOUT_MS,
    maxMs: config.CHAT_MAX_WAIT_S * 1000,
    maxStreamMs: config.CHAT_STREAM_MAX_S * 1000,
    defaultFallback: (provider) => pools.settings.of(provider).fallback ?? fallbackOf(config, provider) ?? [],
    now,
  });
  return { chats, storedChats, chatService, shares, bytesInFlight };
}

/** Connects in the background: the process serves its health pages while the store is still down. */
async function connect(
  config: Config,
  { chats, ended }: { chats: LiveChats; ended: EndedChats },
  { database, store, authentication, instruments, link, ledger, prices, log, lifecycle }: ApiDeps,
): Promise<void> {
  const isConnected = await link.start(chats, async (channel) => {
    const keeping = { settings: link.pools.settings, channel, database, log };
    const keeper = lifecycle.opened('settings', new SettingsKeeper(keeping), (open) => open.stop());
    // Before the first chat is admitted: its provider may be draining.
    await keeper.start();
  });
  const signal = lifecycle.stopping;
  if (!isConnected || signal.aborted) return;
  const { relay } = link;
  lifecycle.opened('ended chats', ended.publish(link, log), (stop) => stop());
  const removed = new RemovedUsers({ records: store.records, relay, signal, log });
  const { directory } = authentication;
  const onLoad = () => void removed.update(directory.removedIds);
  lifecycle.opened('removed users', directory.onLoad(onLoad), (stop) => stop());
  onLoad();
  const { CHAT_TIMEOUT_MS, CHAT_COMPATIBLE_TIMEOUT_MS, CHAT_MAX_WAIT_S, CHAT_STREAM_MAX_S } = config;
  const maxWaitMs = Math.max(CHAT_TIMEOUT_MS, CHAT_COMPATIBLE_TIMEOUT_MS, CHAT_MAX_WAIT_S * 1000);
  const maxMs = maxWaitMs + CHAT_STREAM_MAX_S * 1000;
  const onLost: PrunerDeps['onLost'] = (provider, lost) =>
    ledger.append(...lostEntries(provider, lost, { code: 'timeout', endedAt: store.now() }));
  lifecycle.opened('pruner', startPruner({ store, maxMs, onLost, log }), (pruner) => pruner.stop());
  const draining = { store, database, prices, metrics: instruments.metrics, log };
  lifecycle.opened('ledger drain', new LedgerDrain(draining).start(), (drain) => drain.stop());
  lifecycle.opened('retention', startRetention({ database, config, log }), (open) => open.stop());
  log.info('queue connected');
  await authentication.attempted;
  notifyParent({ type: 'ready' });
}

/** Opens before the API and therefore closes after it: monitoring also sees the end of the process. */
async function serveMetrics(
  { METRICS_PORT: port, HOST: host }: Config,
  deps: MetricsAppDeps,
  lifecycle: Lifecycle,
): Promise<number | undefined> {
  if (port === undefined) return undefined;
  const server = new ApiServer({ app: createMetricsApp(deps), draining: deps.draining });
  lifecycle.opened('metrics server', server, (open) => open.close({ graceMs: 0, onGraceOver: () => {} }));
  return listen(server, { variable: 'METRICS_PORT', port, host });
}

/** Returns the port it listens on. Throws `StartupError` when another program uses the port. */
async function listen(server: ApiServer, address: ListenAddress): Promise<number> {
  const listening = await server.listen(address.port, address.host).catch((error: unknown) => {
    throw explainListenError(error, address);
  });
  return (listening.address() as AddressInfo).port;
}

/** The protocol allows 50,000; a part of this size is read in a fraction of a second. */
const postsPerSitemap = 10_000;

/** The parts of the blog; its renderer is closed with the lifecycle. */
export function openBlog(
  config: Config,
  { database, lifecycle, log }: { database: Database; lifecycle: Lifecycle; log: Log },
) {
  const blog = blogOf(config);
  const posts = new PostStore(database);
  const renderer = lifecycle.opened('renderer', createMarkdownRenderer(), (open) => open.close());
  const render = createRenderedPosts({ renderer, log });
  const excerpts = createExcerpts(renderer);
  const pages = createPostPages({ blog, images: config.BLOG_IMAGES, render, excerpts });
  const feeds = createFeeds({ blog, render, posts });
  const map = createPostMap(database, { partSize: postsPerSitemap });
  const sitemap = new Sitemap({ posts: map, baseUrl: blog.baseUrl });
  const blogs = { posts, blog, pages, excerpts };
  return { blogs, feeds: { feeds }, sitemap, preview: createPreview(renderer) };
}
