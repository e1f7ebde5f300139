import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { expect, vi } from 'vitest';
import { type ChildProgram, startChild } from '../../dev/child-program.js';
import { type Simulator, startSimulator } from '../../dev/simulator/server.js';
import { type Message, providerIds } from '../../shared/contracts/contract.js';
import { withTimeout } from '../../shared/runtime/retry.js';
import { type CanaryWatch, promptCanary, providerKeys, watchForCanaries } from './canaries.js';
import { patience, patienceMs } from './patience.js';
import { simulatorEnvironment } from './simulator-environment.js';
import { freshStore, type StoreKind, type StoreServer, storeOf } from './stores.js';

/** An API, workers and a simulator as real processes, on a part of a store that nothing else uses. */
export interface Deployment {
  /** Base address of `api`. */
  readonly url: string;
  /** The first API that has not ended. */
  readonly api: ChildProgram;
  /** The workers that have not ended. */
  readonly workers: readonly ChildProgram[];
  readonly simulator: Simulator;
  /** The variables by which the programs reach the stores. */
  readonly stores: Record<string, string>;
  /** Sends `POST /chat` with valid credentials by default. */
  chat(request: ChatCall): Promise<ChatReply>;
  /** A request to the blog with the first token and, when there is a body, as JSON. */
  blog(path: string, init?: BlogCall): Promise<Response>;
  startWorker(variables?: Record<string, string>, release?: string): Promise<ChildProgram>;
  /** Starts another API process on the same stores; `release` is the launcher of another release. */
  startApi(variables?: Record<string, string>, release?: string): Promise<StartedApi>;
  /** All programs that were started, including those that have ended. */
  readonly programs: readonly ChildProgram[];
  /** Everything the programs have logged so far. */
  logs(): string;
  /** Gives what the programs log from now on, whenever it is asked. */
  logsFromNow(): () => string;
  /**
   * Makes it what it was at its start: starts an API and workers in place of those that have ended, and ends what was
   * started beside them, or with variables of its own. Gives the programs that it ended.
   */
  restore(): Promise<ChildProgram[]>;
  /** Stops everything; throws when a canary has leaked (`canaries.ts`). */
  stop(): Promise<void>;
}

/** An API process, and requests to it alone. */
export interface StartedApi extends Pick<Deployment, 'url' | 'chat' | 'blog'> {
  readonly child: ChildProgram;
}

export interface ChatCall {
  messages?: Message[];
  /** The raw body, instead of `messages`. */
  body?: string | Uint8Array<ArrayBuffer>;
  provider?: string;
  model?: string;
  headers?: Record<string, string>;
  path?: string;
  /** Base address of another API process. */
  url?: string;
  /** Closes the caller's connection when it aborts. */
  signal?: AbortSignal;
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

/** How to start a deployment. */
export interface DeploymentOptions {
  /** A part of its own in this server, or in the run's of this kind; in the run's PostgreSQL by default. */
  store?: StoreServer | StoreKind;
  workers?: number;
  /** Additional environment of every program. */
  variables?: Record<string, string>;
  /** The launcher of every program, in place of this release's. */
  release?: string;
  /** Makes the store unavailable once it is prepared: the programs start without it, and are not waited for. */
  withoutStore?: () => Promise<void>;
}

export const username = 'tester';
export const password = 'canary-of-the-chat-secret-2718281828';
export const blogToken = 'canary-of-the-blog-token-3141592653';
export const chatToken = 'canary-of-the-chat-token-1618033988';
export const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;

const launcher = resolve('bin/quillgate');
/** Longer than the grace of every test and the time that a program may take to close. */
const graceMs = 60_000;

/** Starts a deployment and waits until all its programs are ready, unless it starts without its store. */
export async function startDeployment({
  store = 'postgres',
  workers = 1,
  variables = {},
  release: usual = launcher,
  withoutStore,
}: DeploymentOptions = {}): Promise<Deployment> {
  const dir = mkdtempSync(join(tmpdir(), 'quillgate-test-'));
  const simulator = await startSimulator({ port: 0 });
  const storeVariables = await freshStore(typeof store === 'string' ? storeOf(store) : store, {
    migrated: true,
  });
  await withoutStore?.();
  const environment = {
    PATH: process.env.PATH,
    ...(process.env.NODE_COMPILE_CACHE && { NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE }),
    HOST: '127.0.0.1',
    PORT: '0',
    WORKER_PORT: '0',
    // So that everything that can be logged is searched for canaries.
    LOG_LEVEL: 'debug',
    CHAT_USERNAME: username,
    CHAT_PASSWORD: password,
    BLOG_TOKEN: blogToken,
    CHAT_TOKEN: chatToken,
    ...storeVariables,
    ...simulatorEnvironment([...providerIds], simulator.url),
    PRICES_FILE: resolve('dev/simulator/prices.json'),
    ...providerKeys,
    ...variables,
  };
  const running: ChildProgram[] = [];
  const ended = new Set<ChildProgram>();
  /** Started with variables of their own, or of another release. */
  const special = new Set<ChildProgram>();
  const alive = (name: string) => running.filter((child) => child.name === name && !ended.has(child));
  const plain = (name: string) => alive(name).filter((child) => !special.has(child));
  const logFiles: string[] = [];
  const run = async (program: string, own: Record<string, string> = {}, release = usual) => {
    const logFile = join(dir, `${program}-${running.length}.log`);
    logFiles.push(logFile);
    const child = await startChild({
      name: program,
      command: release,
      args: [program],
      environment: { ...environment, ...own },
      cwd: dir,
      logFile,
    });
    running.push(child);
    void child.ended.then(() => ended.add(child));
    if (Object.keys(own).length > 0 || release !== usual) special.add(child);
    const tooLate = () => new Error(`${program} is not ready`);
    if (!withoutStore) await withTimeout(patienceMs, child.ready, tooLate);
    return child;
  };
  const [first] = await Promise.all([run('api'), ...Array.from({ length: workers }, () => run('worker'))]);
  const api = () => alive('api')[0] ?? first;
  const url = () => addressOf(api());
  const served = variables.WORKER_PROVIDERS?.split(',') ?? providerIds;
  /** Waits until the API has heard of a worker for each provider: before, it refuses chats. */
  const untilServed = () =>
    vi.waitFor(async () => {
      const answer = await fetch(`${url()}/`, { headers: { Accept: 'application/json' } });
      const { providers } = (await answer.json()) as { providers: Record<string, string> };
      for (const id of served) expect(providers[id], id).toMatch(/^(real|simulated)$/);
    }, patience);
  if (workers > 0 && !withoutStore) await untilServed();
  const sentSecrets = [password, blogToken, chatToken, authorization.replace('Basic ', '')];
  const watch = watchForCanaries([...sentSecrets, ...Object.values(storeVariables)]);
  const logs = () => logFiles.map((file) => readFileSync(file, 'utf8')).join('');
  return {
    get url() {
      return url();
    },
    get api() {
      return api();
    },
    get workers() {
      return alive('worker');
    },
    simulator,
    stores: storeVariables,
    chat: (call) => chat(call.url ?? url(), call, watch),
    blog: (path, call) => blog(url(), path, { ...call, watch }),
    startWorker: (own, release) => run('worker', own, release),
    startApi: async (own, release) => {
      const child = await run('api', own, release);
      const another = addressOf(child);
      return {
        child,
        url: another,
        chat: (call) => chat(another, call, watch),
        blog: (path, call) => blog(another, path, { ...call, watch }),
      };
    },
    programs: running,
    logs,
    logsFromNow: () => {
      const before = logFiles.map(sizeOf);
      return () =>
        logFiles
          .map((file, n) =>
            readFileSync(file)
              .subarray(before[n] ?? 0)
              .toString('utf8'),
          )
          .join('');
    },
    restore: async () => {
      const kept = new Set([...plain('api').slice(0, 1), ...plain('worker').slice(0, workers)]);
      const surplus = [...alive('api'), ...alive('worker')].filter((child) => !kept.has(child));
      const missing = workers - plain('worker').length;
      await Promise.all([
        ...surplus.map((child) => child.stop({ graceMs })),
        ...(plain('api').length === 0 ? [run('api')] : []),
        ...Array.from({ length: Math.max(0, missing) }, () => run('worker')),
      ]);
      if (missing > 0) await untilServed();
      return surplus;
    },
    stop: async () => {
      await Promise.all(running.map((child) => inspectMetrics(child, watch)));
      await Promise.all(running.map((child) => child.stop({ graceMs })));
      await simulator.close();
      const logged = logs();
      rmSync(dir, { recursive: true, force: true });
      await watch.finish(logged);
    },
  };
}

/** A program that has ended or is frozen has no metrics. */
async function inspectMetrics(child: ChildProgram, watch: CanaryWatch): Promise<void> {
  const scraping = fetch(`${addressOf(child)}/metrics`, { signal: AbortSignal.timeout(500) });
  const inspected = scraping.then(async (answer) => {
    watch.inspect(answer);
    await answer.text();
  });
  await inspected.catch(() => undefined);
}

const sizeOf = (file: string): number => statSync(file).size;

const addressOf = ({ port }: ChildProgram): string => `http://127.0.0.1:${port}`;

async function chat(url: string, call: ChatCall, watch: CanaryWatch): Promise<ChatReply> {
  const {
    messages = [{ role: 'user', content: `Hello, ${promptCanary}` }],
    provider = 'openai',
    model,
    path = '/chat',
    signal,
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
    ...(signal && { signal }),
  });
  watch.inspect(response);
  const body = (await response.json()) as Record<string, unknown>;
  return { status: response.status, headers: response.headers, body, tookMs: performance.now() - startedAt };
}

async function blog(
  url: string,
  path: string,
  { method, json, headers, watch }: BlogCall & { watch: CanaryWatch },
): Promise<Response> {
  const response = await fetch(`${url}${path}`, {
    method: method ?? (json === undefined ? 'GET' : 'POST'),
    headers: { Authorization: `Bearer ${blogToken}`, 'Content-Type': 'application/json', ...headers },
    ...(json !== undefined && { body: JSON.stringify(json) }),
  });
  watch.inspect(response);
  return response;
}
