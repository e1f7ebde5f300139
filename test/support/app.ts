import express, { type Express } from 'express';
import { environmentUsers } from '../../api/access/authentication.js';
import { BytesInFlight } from '../../api/access/bytes-in-flight.js';
import type { Caller } from '../../api/access/caller.js';
import type { Authentication } from '../../api/access/login.js';
import { FleetEvents } from '../../api/admin/events.controller.js';
import { OperatorSettings, type SettingsSource } from '../../api/admin/operator-settings.js';
import type { PoolQueues } from '../../api/admin/pool-jobs.js';
import { type AppDeps, createApp } from '../../api/app.js';
import { blogOf } from '../../api/blog/blog-layout.js';
import { createFeeds } from '../../api/blog/feeds.controller.js';
import { createExcerpts } from '../../api/blog/rendering/excerpts.js';
import { createRenderedPosts } from '../../api/blog/rendering/rendered-posts.js';
import type { ChatCommand, ChatReply } from '../../api/chat/chat-command.js';
import { StoredAnswers } from '../../api/chat/stored-answers.js';
import { StoredChats } from '../../api/chat/stored-chats.js';
import { UserShares } from '../../api/chat/user-shares.js';
import type { ChatApi } from '../../api/chat-apis/chat-api.js';
import { FleetLink } from '../../api/fleet-link/fleet-link.js';
import { notFound, problemHandler } from '../../api/http/problem.js';
import { Sitemap } from '../../api/site/front-page.js';
import type { SiteDeps } from '../../api/site/site-router.js';
import { type Database, openDatabase } from '../../db/database/client.js';
import { createPostMap } from '../../db/posts/post-lists.js';
import { PostStore } from '../../db/posts/post-store.js';
import { type Environment, parseConfig } from '../../shared/config/config.js';
import { Failure } from '../../shared/failures.js';
import type { ListedModel } from '../../shared/fleet/fleet.js';
import { type FleetSource, FleetState } from '../../shared/fleet/fleet-state.js';
import { openInstruments } from '../../shared/metrics/instruments.js';
import { apiMetrics } from '../../shared/metrics/metrics.js';
import { openQueueStore } from '../../shared/queue/stores/open.js';
import type { Log } from '../../shared/runtime/log.js';
import { directoryOf } from './access-directory.js';
import { createAuthentication, signedInAs } from './authentication.js';
import { type Client, createClient } from './client.js';
import { noLedger } from './entries.js';
import { userNamed } from './identities.js';
import { createRecordingLog } from './recording-log.js';
import { unhurriedRenderer } from './renderers.js';
import { type Served, serve } from './serve.js';

/** The HTTP application with a chat service that only records each command and replies at once. */
export interface TestApp extends Served, AsyncDisposable {
  readonly commands: ChatCommand[];
  /** The recent past for operators. */
  readonly authentication: Authentication;
  /** Everything logged so far, as one text and line by line. */
  logs(): string;
  readonly lines: Record<string, unknown>[];
  /** Sends a request without credentials. */
  ask: Client;
  /** Sends a request as an operator, with a token. */
  operate: Client;
  /** Sends a `POST`, by default a greeting to `/chat` with the credentials of `user`. */
  chat: Client;
  /** Signs in at the console, and gives the headers of a request of it. */
  signIn(site?: string): Promise<Record<string, string>>;
}

interface AppOptions {
  variables?: Environment;
  /** The reaction to a chat. May throw what the chat service throws; if it returns nothing, the reply is a greeting. */
  reply?: (command: ChatCommand) => ChatReply | Promise<ChatReply> | undefined;
  /** The APIs of others, in place of those that the server has. */
  apis?: readonly ChatApi[];
  models?: readonly ListedModel[];
  providerStates?: SiteDeps['providerStates'];
  /** The source of the fleet. This and the next two are a link that never connects unless they are given. */
  fleet?: FleetSource;
  /** The source of the pools' settings. */
  settings?: SettingsSource;
  /** Finds a chat that has not ended; there is none unless it is given. */
  findUnfinished?: AppDeps['admin']['findUnfinished'];
  /** The queues whose jobs operators list. */
  queues?: PoolQueues;
  /** Away unless it is given; stopped with the application. */
  opened?: { database: Database; stop(): Promise<void> };
  reloadAccounts?: () => Promise<void>;
  /** The sessions of the console; every name may sign in with `secret`, as an operator unless it is `user`. */
  sessions?: ReturnType<typeof directoryOf>;
  /** Renders posts in feeds, and their beginnings in lists; their pages have no more than their lengths. */
  renderer?: ReturnType<typeof unhurriedRenderer>;
}

/** The owners of the tokens, which have the scopes that matter to a test. */
const callers: Record<string, Caller> = {
  operator: { ...userNamed('operator'), scopes: ['admin'] },
  reader: { ...userNamed('Rita'), scopes: ['blogs:read', 'chat'] },
  writer: { ...userNamed('Wanda'), scopes: ['blogs:write', 'blogs:read'] },
  counted: { ...userNamed('Rita'), scopes: ['chat'], tokenId: '01a20ac9-0000-7000-8000-00000000000a' },
  other: { ...userNamed('Otto'), scopes: ['blogs:write'] },
  // Revoked after it was loaded.
  revoked: {
    ...userNamed('Wanda'),
    scopes: ['blogs:write'],
    tokenId: '01a20ac9-0000-7000-8000-000000000000',
  },
};

export const basic = (name: string): string => `Basic ${btoa(`${name}:secret`)}`;

export const greeting = {
  kind: 'completed',
  completion: { kind: 'ok', text: 'Hello', model: 'm', queueMs: 0, providerMs: 0 },
} as const satisfies ChatReply;

/** Starts the application as `createApp` builds it. */
export async function startApp({
  variables,
  reply = () => undefined,
  apis,
  models = [],
  providerStates = async () => ({
    openai: 'real',
    anthropic: 'simulated',
    bedrock: 'no_worker',
    vertexai: 'unknown',
  }),
  fleet,
  settings,
  findUnfinished = async () => undefined,
  queues,
  opened,
  reloadAccounts = async () => undefined,
  sessions = directoryOf({}),
  renderer = unhurriedRenderer(),
}: AppOptions = {}): Promise<TestApp> {
  const commands: ChatCommand[] = [];
  const { log, lines, text: logs } = createRecordingLog();
  // Nothing listens on port 1: no part of these tests reaches the stores.
  const config = parseConfig({ REDIS_URL: 'redis://127.0.0.1:1', ...variables }, 'config');
  const store = openQueueStore(config, log);
  const { database, stop } = opened ?? openNoDatabase(log);
  const posts = new PostStore(database);
  const blog = blogOf(config);
  const instruments = openInstruments(apiMetrics);
  const link = new FleetLink({ store, metrics: instruments.metrics, ledger: noLedger, log });
  const fleetState = new FleetState({ store, source: fleet ?? link });
  const shares = new UserShares({
    maxInFlight: () => config.CHAT_USER_MAX_IN_FLIGHT,
    maxPerMinute: config.CHAT_USER_MAX_PER_MINUTE,
  });
  const authentication = createAuthentication(log, {
    directory: {
      checkUser: (name, secret) =>
        secret === 'secret' ? signedInAs(name, { isOperator: name !== 'user' }) : undefined,
      checkToken: (token) => callers[token],
      findToken: async (token) => callers[token],
      checkSession: (key) => sessions.checkSession(key),
      findSession: (key) => sessions.findSession(key),
    },
    publicReads: config.BLOG_READS === 'public',
  });
  const deps: AppDeps = {
    config,
    shares,
    bytesInFlight: new BytesInFlight({
      perUser: config.CHAT_USER_MAX_QUEUED_BYTES,
      inAll: config.CHAT_MAX_QUEUED_BYTES,
    }),
    chatService: {
      follow: () => Promise.reject(new Failure('not_found')),
      createChat: async (command) => {
        using _place = shares.enter(command.user);
        await shares.consume(command.user);
        commands.push(command);
        return (await reply(command)) ?? greeting;
      },
    },
    storedChats: new StoredChats({
      ...{ records: store.records, link, resultTtlMs: 1, now: Date.now },
      answers: new StoredAnswers(Date.now),
    }),
    // Without a limit of time: an excerpt takes as long as the machine needs.
    blogs: { posts, blog, pages, excerpts: createExcerpts(renderer, 2_147_483_647) },
    feeds: { feeds: createFeeds({ blog, posts, render: createRenderedPosts({ renderer, log }) }) },
    sitemap: new Sitemap({ posts: createPostMap(database, { partSize: 10 }), baseUrl: blog.baseUrl }),
    admin: {
      ...{
        database,
        reloadAccounts,
        findUnfinished,
        samples: { list: () => [] },
        sessions,
        fleet: fleetState,
      },
      environmentUsers: environmentUsers(config),
      queues: queues ?? { queueOf: (id) => link.queueOf(id), store },
      events: new FleetEvents({ fleet: fleetState, stopping: new AbortController().signal }),
      settings: new OperatorSettings({ config, database, source: settings ?? link }),
      preview: async (content) => `<p>${content}</p>`,
    },
    ...{ authentication, store, database, providerStates, instruments, log },
    link: { isConnected: true },
    models: () => models,
    draining: () => false,
  };
  const served = await serve(createApp(deps, apis));
  const { url } = served;
  const close = async () => {
    await served.close();
    await renderer.close();
    await link.close();
    await store.close();
    await stop();
  };
  const chat = createClient(url, { Authorization: basic('user'), 'X-LLM': 'openai' });
  return {
    ...{ ...served, commands, authentication, logs, lines },
    ask: createClient(url),
    operate: createClient(url, { Authorization: 'Bearer operator' }),
    signIn: async (site = 'same-origin') => {
      const { key } = await sessions.openSession({ user: userNamed('ann'), secretHash: undefined });
      return { Cookie: `quillgate_session=${key}`, 'Sec-Fetch-Site': site };
    },
    chat: (sent) => chat({ path: '/chat', body: { messages: [{ content: 'Hello' }] }, ...sent }),
    close,
    [Symbol.asyncDispose]: close,
  };
}

function openNoDatabase(log: Log) {
  const database = openDatabase({ url: 'postgres://127.0.0.1:1/x', poolSize: 1, log });
  return { database, stop: () => database.close() };
}

const pages: AppDeps['blogs']['pages'] = {
  edition: 'abc',
  render: async ({ content }) => {
    if (content === 'unrenderable') throw new Error('cannot render');
    return { html: `<p>${content.length}</p>`, csp: "default-src 'none'", final: true };
  },
};

/** Serves some routes in the middle of the application: with ids of requests before them, and problems behind them. */
export async function serveRoutes(
  add: (app: Express) => unknown,
  log: Log = createRecordingLog().log,
): Promise<Served> {
  const app = express().disable('etag').set('trust proxy', 'loopback');
  app.use((_request, response, next) => next(void response.set('X-Request-Id', 'the-id')));
  add(app);
  app.use(notFound, problemHandler(log));
  return serve(app);
}
