import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { migrateDatabase } from '../../db/migrate.js';
import { type ChildProgram, startChild } from '../../dev/child-program.js';
import { simulatorEnvironment } from '../../dev/simulated-providers.js';
import { type Simulator, startSimulator } from '../../dev/simulator/server.js';
import { parseConfig } from '../../shared/config.js';
import { type Message, providerIds } from '../../shared/contract.js';
import { migrateQueueStore } from '../../shared/queue.js';
import { startEmptyDatabase } from './database.js';
import { freshStore, type StoreServer } from './stores.js';

/** An API, workers and a simulator as real processes on a part of a store that nothing else uses. */
export interface Deployment {
  /** Base address of the API. */
  readonly url: string;
  readonly api: ChildProgram;
  readonly workers: ChildProgram[];
  readonly simulator: Simulator;
  /** What the programs were given to reach the stores. */
  readonly stores: Record<string, string>;
  /** Sends `POST /chat` with good credentials unless told otherwise. */
  chat(request: ChatCall): Promise<ChatReply>;
  /** A request to the blog with the first token and, when there is a body, as JSON. */
  blog(path: string, init?: BlogCall): Promise<Response>;
  startWorker(variables?: Record<string, string>): Promise<ChildProgram>;
  /** Everything the programs have logged so far. */
  logs(): string;
  stop(): Promise<void>;
}

export interface ChatCall {
  messages?: Message[];
  /** Sent as it is instead of `messages`. */
  body?: string | Uint8Array;
  provider?: string;
  model?: string;
  headers?: Record<string, string>;
  path?: string;
}

export interface BlogCall {
  method?: string;
  /** Sent as JSON. */
  json?: unknown;
  headers?: Record<string, string>;
}

export interface ChatReply {
  status: number;
  headers: Headers;
  /** The parsed JSON. */
  body: Record<string, unknown>;
  tookMs: number;
}

interface DeploymentOptions {
  /** An embedded PostgreSQL that nobody else uses, unless one is given. */
  store?: StoreServer;
  workers?: number;
  /** Added to the environment of every program. */
  variables?: Record<string, string>;
  /** Takes the store away once it is prepared: the programs start without it, and are not waited for. */
  withoutStore?: () => Promise<void>;
}

export const username = 'tester';
export const password = 'secret-of-the-tester';
export const blogToken = 'first-token-of-the-blog-in-the-tests';
export const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;

const launcher = resolve('bin/quillgate');
const graceMs = 10_000;

export async function startDeployment({ store, ...options }: DeploymentOptions): Promise<Deployment> {
  if (store) return startOn(store, options);
  const own = await startEmptyDatabase();
  try {
    const deployment = await startOn({ kind: 'postgres', url: own.url, databaseUrl: own.url }, options);
    return { ...deployment, stop: () => deployment.stop().finally(own.stop) };
  } catch (error) {
    await own.stop();
    throw error;
  }
}

async function startOn(
  store: StoreServer,
  { workers = 1, variables = {}, withoutStore }: Omit<DeploymentOptions, 'store'>,
): Promise<Deployment> {
  const dir = mkdtempSync(join(tmpdir(), 'quillgate-test-'));
  const simulator = await startSimulator({ port: 0 });
  const storeVariables = await freshStore(store);
  const config = parseConfig(storeVariables, 'migrate');
  await migrateDatabase(config.DATABASE_URL ?? '');
  await migrateQueueStore(config);
  await withoutStore?.();
  const environment = {
    PATH: process.env.PATH,
    HOST: '127.0.0.1',
    PORT: '0',
    WORKER_PORT: '0',
    CHAT_USERNAME: username,
    CHAT_PASSWORD: password,
    BLOG_TOKEN: blogToken,
    ...storeVariables,
    ...simulatorEnvironment([...providerIds], simulator.url),
    ...variables,
  };
  const running: ChildProgram[] = [];
  const logFiles: string[] = [];
  const run = async (program: string, own: Record<string, string> = {}) => {
    const logFile = join(dir, `${program}-${running.length}.log`);
    logFiles.push(logFile);
    const child = await startChild({
      name: program,
      command: launcher,
      args: [program],
      environment: { ...environment, ...own },
      cwd: dir,
      logFile,
    });
    running.push(child);
    if (!withoutStore) await child.ready;
    return child;
  };
  const [api, ...started] = await Promise.all([
    run('api'),
    ...Array.from({ length: workers }, () => run('worker')),
  ]);
  const url = `http://127.0.0.1:${api.port}`;
  return {
    url,
    api,
    workers: started,
    simulator,
    stores: storeVariables,
    chat: (call) => chat(url, call),
    blog: (path, call) => blog(url, path, call),
    startWorker: (own) => run('worker', own),
    logs: () => logFiles.map((file) => readFileSync(file, 'utf8')).join(''),
    stop: async () => {
      await Promise.all(running.map((child) => child.stop({ graceMs })));
      await simulator.close();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

async function chat(url: string, call: ChatCall): Promise<ChatReply> {
  const {
    messages = [{ role: 'user', content: 'Hello' }],
    provider = 'openai',
    model,
    path = '/chat',
  } = call;
  const startedAt = performance.now();
  const response = await fetch(`${url}${path}`, {
    method: 'POST',
    headers: {
      Authorization: authorization,
      'Content-Type': 'application/json',
      'X-LLM': provider,
      ...(model && { 'X-LLM-Model': model }),
      ...call.headers,
    },
    body: call.body ?? JSON.stringify({ messages }),
  });
  const body = (await response.json()) as Record<string, unknown>;
  return { status: response.status, headers: response.headers, body, tookMs: performance.now() - startedAt };
}

const blog = (url: string, path: string, { method, json, headers }: BlogCall = {}): Promise<Response> =>
  fetch(`${url}${path}`, {
    method: method ?? (json === undefined ? 'GET' : 'POST'),
    headers: { Authorization: `Bearer ${blogToken}`, 'Content-Type': 'application/json', ...headers },
    ...(json !== undefined && { body: JSON.stringify(json) }),
  });
