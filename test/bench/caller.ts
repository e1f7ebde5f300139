import { setTimeout as delay } from 'node:timers/promises';
import { startSimulator } from '../../dev/simulator/server.js';
import { chatBody, chatHeaders, openGateway } from './gateway.js';
import { launcherOf, type Place, runToEnd, thisCheckout } from './programs.js';
import type { StoreName } from './stores.js';

/** A chat to ask. */
export interface Ask {
  model?: string | undefined;
  provider?: string | undefined;
  headers?: Record<string, string>;
  body?: string;
}

export interface Reply {
  /** `ok`, `accepted`, the code of the problem, or `none` where the caller left or the connection broke. */
  readonly code: string;
  readonly tookMs: number;
  readonly endedAt: number;
}

/** An API, two workers, and a caller of theirs; the simulator runs in this process. */
export type Service = Awaited<ReturnType<typeof openService>>;

/** Starts them on a store of their own. */
export async function openService(name: StoreName, settings: Record<string, string>, place: Place) {
  const simulator = place.lifecycle.opened('simulator', await startSimulator({ port: 0 }), (open) =>
    open.close(),
  );
  const gateway = await openGateway(name, { simulatorUrl: simulator.url, settings, workers: 2 }, place);
  let count = 0;
  /** Sends a chat whose model has a mark of its own, unless it has one already. */
  const ask = ({ model = 'sim-echo', provider = 'openai', headers, body = chatBody }: Ask = {}) => {
    const marked = model.includes('@') ? model : `${model}@${count++}`;
    const going = new AbortController();
    const startedAt = performance.now();
    const all = { ...chatHeaders, 'X-LLM': provider, 'X-LLM-Model': marked, ...headers };
    const sent = fetch(`${gateway.url}/chat`, { method: 'POST', headers: all, body, signal: going.signal });
    sent.catch(() => undefined);
    /** Its first call at the provider. */
    const arrived = () => simulator.waitForCall((call) => call.model === marked);
    /** The caller leaves; gives when. */
    const leave = () => {
      going.abort();
      return Date.now();
    };
    return { startedAt, sent, reply: () => replyOf(sent, startedAt), arrived, leave };
  };
  /** Runs `quillgate` with the arguments on the same stores; gives what it prints. */
  const quillgate = (...args: string[]) => {
    const environment = { PATH: process.env.PATH, ADMIN_USERNAME: 'operator', ...gateway.store.variables };
    return runToEnd([launcherOf(thisCheckout), ...args], place, environment);
  };
  const chat = (call?: Ask): Promise<Reply> => ask(call).reply();
  await until(async () => (await chat()).code === 'ok', 100);
  return { gateway, simulator, place, ask, chat, quillgate };
}

async function replyOf(sent: Promise<Response>, startedAt: number): Promise<Reply> {
  const read = async () => {
    const response = await sent;
    const { code } = (await response.json()) as { code?: string };
    return code ?? (response.status === 202 ? 'accepted' : 'ok');
  };
  const code = await read().catch(() => 'none');
  const endedAt = performance.now();
  return { code, tookMs: endedAt - startedAt, endedAt };
}

/** Looks again and again until it is so, for a minute at most; gives how long that took, in milliseconds. */
export async function until(isSo: () => Promise<boolean> | boolean, everyMs = 5): Promise<number> {
  const startedAt = performance.now();
  const signal = AbortSignal.timeout(60_000);
  while (!(await isSo())) await delay(everyMs, undefined, { signal });
  return performance.now() - startedAt;
}

/** Starts something at fixed times, whether or not earlier ones have ended; gives all results. */
export async function paced<T>(
  count: number,
  everyMs: number,
  start: (n: number) => Promise<T>,
): Promise<T[]> {
  const startedAt = performance.now();
  const started: Promise<T>[] = [];
  for (let n = 0; n < count; n += 1) {
    started.push(start(n));
    await delay(Math.max(0, startedAt + (n + 1) * everyMs - performance.now()));
  }
  return Promise.all(started);
}

export const times = <T>(count: number, make: (n: number) => T): T[] =>
  Array.from({ length: count }, (_, n) => make(n));
