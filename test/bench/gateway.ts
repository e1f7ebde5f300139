import { setTimeout as delay } from 'node:timers/promises';
import type { ChildProgram } from '../../dev/child-program.js';
import { providerIds } from '../../shared/contract.js';
import type { Lifecycle } from '../../shared/runtime/lifecycle.js';
import { simulatorEnvironment } from '../support/simulator-environment.js';
import { failureOf, launcherOf, programsIn, thisCheckout } from './programs.js';
import { runToEnd } from './run-to-end.js';
import type { RunningStore } from './store.js';

/** One API process, unless a run asks for more, and one worker process, as in production, and the simulator they ask. */
export interface Gateway {
  readonly chatUrl: string;
  /** Of every API process, when there are several. */
  readonly origins: readonly string[];
  readonly simulatorUrl: string;
  readonly pids: { readonly api: number; readonly worker: number; readonly simulator: number };
  /** Rejects when one of them ends although nobody asked it to. */
  readonly failed: Promise<never>;
  /** Resolves when a request is answered, and so when the jobs before it have been taken. */
  answersOne(): Promise<void>;
}

/** Jobs at once in the worker process, unless a run asks for more. */
export const concurrency = 1000;

/** With the credentials of the benchmark's only user. */
export const chatHeaders = {
  Authorization: `Basic ${Buffer.from('bench:only-on-loopback').toString('base64')}`,
  'Content-Type': 'application/json',
  'X-LLM': 'openai',
};

/** The conversation of every request. */
export const messages = [{ role: 'user', content: 'What is a queue good for?' }];

const answerWithinMs = 60_000;
const betweenTriesMs = 100;

/** Starts the simulator of this checkout, with its log in `dir`. */
export const openSimulator = (lifecycle: Lifecycle, dir: string): Promise<ChildProgram> =>
  programsIn(dir, lifecycle)('simulator', ['simulator', '--port', '0'], { PATH: process.env.PATH });

interface GatewayDeps {
  store: RunningStore;
  simulator: ChildProgram;
  lifecycle: Lifecycle;
  /** Folder for logs, and the working directory. */
  dir: string;
  /** Root folder of the checkout whose programs run. */
  checkout?: string;
  jobsAtOnce?: number;
  /** How many API processes. */
  apis?: number;
}

/** Starts API and worker on the store, and waits until a request is answered. */
export async function openGateway(deps: GatewayDeps): Promise<Gateway> {
  const { store, simulator, lifecycle, dir, checkout = thisCheckout, jobsAtOnce = concurrency } = deps;
  await migrate(store.variables, { lifecycle, dir, checkout });
  const run = programsIn(dir, lifecycle, checkout);
  const simulatorUrl = `http://127.0.0.1:${simulator.port}`;
  const environment = environmentOf(store, simulatorUrl, { OPENAI_CONCURRENCY: `${jobsAtOnce}` });
  const api = await run('api', ['api'], environment);
  const apis = [api];
  for (let count = 2; count <= (deps.apis ?? 1); count += 1)
    apis.push(await run(`api-${count}`, ['api'], environment));
  const worker = await run('worker', ['worker'], environment);
  const ours = [...apis, worker];
  const failed = failureOf([simulator, ...ours], dir);
  await Promise.race([Promise.all(ours.map(({ ready }) => ready)), failed]);
  const origins = apis.map(({ port }) => `http://127.0.0.1:${port}`);
  const chatUrl = `${origins[0]}/chat`;
  const answersOne = () => untilAnswered(chatUrl, lifecycle.stopping);
  await Promise.race([answersOne(), failed]);
  const pids = { api: api.pid, worker: worker.pid, simulator: simulator.pid };
  return { chatUrl, origins, simulatorUrl, pids, failed, answersOne };
}

/** Brings the schema to what the checkout's programs need, by its own `quillgate migrate`. */
export async function migrate(
  variables: RunningStore['variables'],
  { lifecycle, dir, checkout }: Required<Pick<GatewayDeps, 'lifecycle' | 'dir' | 'checkout'>>,
): Promise<void> {
  const environment = { PATH: process.env.PATH, ...variables };
  await runToEnd(launcherOf(checkout), ['migrate'], { cwd: dir, environment, lifecycle });
}

/** Of API and workers on this store, with the simulator for every provider; `settings` are variables of a run's own. */
export function environmentOf(
  store: RunningStore,
  simulatorUrl: string,
  settings: Record<string, string>,
): NodeJS.ProcessEnv {
  return {
    PATH: process.env.PATH,
    NODE_ENV: 'production',
    HOST: '127.0.0.1',
    PORT: '0',
    WORKER_PORT: '0',
    LOG_LEVEL: 'info',
    CHAT_USERNAME: 'bench',
    CHAT_PASSWORD: 'only-on-loopback',
    ...settings,
    ...store.variables,
    ...simulatorEnvironment([...providerIds], simulatorUrl),
  };
}

async function untilAnswered(url: string, stopping: AbortSignal): Promise<void> {
  const signal = AbortSignal.any([stopping, AbortSignal.timeout(answerWithinMs)]);
  const init = { method: 'POST', headers: chatHeaders, body: JSON.stringify({ messages }), signal };
  for (;;) {
    const response = await fetch(url, init);
    await response.arrayBuffer();
    if (response.ok) return;
    await delay(betweenTriesMs, undefined, { signal });
  }
}
