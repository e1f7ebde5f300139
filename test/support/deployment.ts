import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { type ChildProgram, startChild } from '../../dev/child-program.js';
import { simulatorEnvironment } from '../../dev/simulated-providers.js';
import { type Simulator, startSimulator } from '../../dev/simulator/server.js';
import { parseConfig } from '../../shared/config.js';
import { type Message, providerIds } from '../../shared/contract.js';
import { migrateQueueStore } from '../../shared/queue.js';
import { freshStore, type StoreServer } from './stores.js';

/** An API, workers and a simulator as real processes on a part of a store that nothing else uses. */
export interface Deployment {
  /** Base address of the API. */
  readonly url: string;
  readonly api: ChildProgram;
  readonly workers: ChildProgram[];
  readonly simulator: Simulator;
  /** Sends `POST /chat` with good credentials unless told otherwise. */
  chat(request: ChatCall): Promise<ChatReply>;
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

export interface ChatReply {
  status: number;
  headers: Headers;
  /** The parsed JSON. */
  body: Record<string, unknown>;
  tookMs: number;
}

interface DeploymentOptions {
  store: StoreServer;
  workers?: number;
  /** Added to the environment of every program. */
  variables?: Record<string, string>;
}

export const username = 'tester';
export const password = 'secret-of-the-tester';
export const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;

const launcher = resolve('bin/quillgate');
const graceMs = 10_000;

export async function startDeployment({
  store,
  workers = 1,
  variables = {},
}: DeploymentOptions): Promise<Deployment> {
  const dir = mkdtempSync(join(tmpdir(), 'quillgate-test-'));
  const simulator = await startSimulator({ port: 0 });
  const storeVariables = await freshStore(store);
  await migrateQueueStore(parseConfig(storeVariables, 'migrate'));
  const environment = {
    PATH: process.env.PATH,
    HOST: '127.0.0.1',
    PORT: '0',
    WORKER_PORT: '0',
    CHAT_USERNAME: username,
    CHAT_PASSWORD: password,
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
    await child.ready;
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
    chat: (call) => chat(url, call),
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
