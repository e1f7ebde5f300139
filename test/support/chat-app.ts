import type { AccessDirectory } from '../../api/access/access-directory.js';
import { BytesInFlight } from '../../api/access/bytes-in-flight.js';
import type { Caller } from '../../api/access/caller.js';
import { environmentUsers } from '../../api/access/open-authentication.js';
import { FleetEvents } from '../../api/admin/fleet-events.js';
import { History } from '../../api/admin/history/history.js';
import { OperatorSettings, type SettingsSource } from '../../api/admin/operator-settings.js';
import type { PoolQueues } from '../../api/admin/pool-jobs.js';
import { type AppDeps, createApp } from '../../api/app.js';
import { blogOf } from '../../api/blog/blog-layout.js';
import { createFeeds } from '../../api/blog/feeds.js';
import type { ChatCommand, ChatReply } from '../../api/chat/chat-command.js';
import type { Completion } from '../../api/chat/chat-result.js';
import { StoredAnswers } from '../../api/chat/stored-answers.js';
import { StoredChats } from '../../api/chat/stored-chats.js';
import { UserShares } from '../../api/chat/user-shares.js';
import type { ChatApi } from '../../api/chat-apis/chat-api.js';
import { FleetLink } from '../../api/fleet-link/fleet-link.js';
import type { SiteDeps } from '../../api/site/site-router.js';
import { Sitemap } from '../../api/site/sitemap.js';
import { type Database, openDatabase } from '../../db/database/client.js';
import { createPostMap } from '../../db/posts/post-map.js';
import { PostStore } from '../../db/posts/post-store.js';
import { type Environment, parseConfig } from '../../shared/config/config.js';
import { Failure } from '../../shared/failures.js';
import { type FleetSource, FleetState } from '../../shared/fleet/fleet-state.js';
import type { ListedModel } from '../../shared/fleet/models.js';
import { openInstruments } from '../../shared/metrics/instruments.js';
import { apiMetrics } from '../../shared/metrics/metrics.js';
import { openQueueStore } from '../../shared/queue/stores/open.js';
import { directoryOf } from './access-directory.js';
import { createAuthentication, signedInAs } from './authentication.js';
import { userNamed } from './identities.js';
import { MemorySessions } from './memory-sessions.js';
import { createRecordingLog } from './recording-log.js';
import { serve } from './serve.js';

/** The HTTP application with a chat service that only records each command and replies at once. */
export interface ChatApp {
  readonly url: string;
  readonly commands: ChatCommand[];
  /** The recent past for operators. */
  readonly history: History;
  /** Everything logged so far. */
  logs(): string;
  post(call: {
    body?: string | Uint8Array;
    headers?: Record<string, string>;
    path?: string;
    signal?: AbortSignal;
  }): Promise<Response>;
  close(): Promise<void>;
}

/** Nothing stops here. */
const stopping = new AbortController().signal;

/** By their tokens; only one of them is an operator. */
export const operators = new Map<string, Caller>([
  ['operator', { ...userNamed('operator'), scopes: ['admin'] }],
  ['reader', { ...userNamed('reader'), scopes: ['blogs:read', 'chat'] }],
  ['writer', { ...userNamed('writer'), scopes: ['blogs:write'] }],
]);

const authorization = `Basic ${btoa('user:secret')}`;

/** `reply` may throw what the chat service throws; if it returns nothing, the reply is a greeting. */
export async function startChatApp({
  reply = () => undefined,
  variables = {},
  models = [],
  providerStates = async () => ({
    openai: 'real',
    anthropic: 'simulated',
    bedrock: 'no_worker',
    vertexai: 'unknown',
  }),
  fleet,
  settings,
  queues,
  sessions = directoryOf({ sessions: new MemorySessions() }),
  postsDatabase,
  adminDatabase = { run: () => Promise.reject(new Failure('database_unavailable')) },
  reloadAccounts = async () => undefined,
  apis,
}: {
  reply?: (command: ChatCommand) => ChatReply | Promise<ChatReply> | undefined;
  /** The APIs of others, in place of those that the server has. */
  apis?: readonly ChatApi[] | undefined;
  variables?: Environment;
  models?: readonly ListedModel[];
  providerStates?: SiteDeps['providerStates'];
  /** The source of the fleet. This and the next two are a link that never connects unless they are given. */
  fleet?: FleetSource;
  /** The source of the pools' settings. */
  settings?: SettingsSource;
  /** The queues whose jobs operators list. */
  queues?: PoolQueues;
  /** The operators' changes. */
  adminDatabase?: Pick<Database, 'run'>;
  reloadAccounts?: () => Promise<void>;
  /** Where the posts are; away unless it is given. */
  postsDatabase?: Database;
  /** The sessions of the console; every name may sign in with `secret`, as an operator unless it is `user`. */
  sessions?: AccessDirectory;
} = {}): Promise<ChatApp> {
  const commands: ChatCommand[] = [];
  const recording = createRecordingLog();
  // Nothing listens on port 1: no part of these tests reaches the stores.
  const config = parseConfig({ REDIS_URL: 'redis://127.0.0.1:1', ...variables }, 'config');
  const store = openQueueStore(config, recording.log);
  const database = openDatabase({ url: 'postgres://127.0.0.1:1/x', poolSize: 1, log: recording.log });
  const posts = new PostStore(postsDatabase ?? database);
  const instruments = openInstruments(apiMetrics);
  const link = new FleetLink({ store, metrics: instruments.metrics, log: recording.log });
  const fleetState = new FleetState({ store, source: fleet ?? link });
  const history = new History({ log: recording.log });
  const bytesInFlight = new BytesInFlight({
    perUser: config.CHAT_USER_MAX_QUEUED_BYTES,
    inAll: config.CHAT_MAX_QUEUED_BYTES,
  });
  const shares = new UserShares({
    maxInFlight: () => config.CHAT_USER_MAX_IN_FLIGHT,
    maxPerMinute: config.CHAT_USER_MAX_PER_MINUTE,
  });
  const deps: AppDeps = {
    config,
    ...{ bytesInFlight, shares },
    chatService: {
      follow: () => Promise.reject(new Failure('not_found')),
      createChat: async (command) => {
        using _place = shares.enter(command.user);
        await shares.consume(command.user);
        commands.push(command);
        return (await reply(command)) ?? hello;
      },
    },
    storedChats: new StoredChats({
      records: store.records,
      link,
      resultTtlMs: 1,
      answers: new StoredAnswers(Date.now),
      now: Date.now,
    }),
    blogs: { posts, blog: blogOf(config), pages: noPages, excerpts: async () => [] },
    feeds: { feeds: createFeeds({ blog: blogOf(config), render: noContent, posts }) },
    sitemap: new Sitemap({ posts: createPostMap(database, { partSize: 10 }), baseUrl: 'http://localhost' }),
    admin: {
      database: adminDatabase,
      reloadAccounts,
      environmentUsers: environmentUsers(config),
      queues: queues ?? { queueOf: (id) => link.queueOf(id), readTimes: store.readTimes },
      fleet: fleetState,
      events: new FleetEvents({ fleet: fleetState, history, stopping }),
      history,
      settings: new OperatorSettings({ config, database: adminDatabase, source: settings ?? link }),
      sessions,
      preview: async (content) => `<p>${content}</p>`,
    },
    authentication: createAuthentication(recording.log, {
      directory: {
        checkUser: (name, secret) =>
          secret === 'secret' ? signedInAs(name, { isOperator: name !== 'user' }) : undefined,
        checkToken: (token) => operators.get(token),
        findToken: async (token) => operators.get(token),
        checkSession: (key) => sessions.checkSession(key),
        findSession: (key) => sessions.findSession(key),
      },
      publicReads: config.BLOG_READS === 'public',
    }),
    store,
    database,
    link: { isConnected: true },
    models: () => models,
    providerStates,
    draining: () => false,
    instruments,
    log: recording.log,
  };
  const server = await serve(createApp(deps, apis));
  return {
    url: server.url,
    commands,
    history,
    logs: recording.text,
    post: ({ body = '{"messages":[{"content":"Hello"}]}', headers, path = '/chat', signal }) =>
      fetch(`${server.url}${path}`, {
        method: 'POST',
        headers: {
          Authorization: authorization,
          'Content-Type': 'application/json',
          'X-LLM': 'openai',
          ...headers,
        },
        body,
        ...(signal && { signal }),
      }),
    close: async () => {
      await server.close();
      await link.close();
      await store.close();
      await database.close();
    },
  };
}

const noContent = async () => ({ html: '', final: true });
const noPages = { edition: '', render: async () => ({ html: '', csp: '', final: true }) };
const text: Completion = { kind: 'ok', text: 'Hello', model: 'm', queueMs: 0, providerMs: 0 };
const hello: ChatReply = { kind: 'completed', completion: text };
