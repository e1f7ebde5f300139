import { setTimeout as delay } from 'node:timers/promises';
import { authorization } from './deployment.js';

/** A minimal load balancer in front of API processes that loses no request. */
export interface Balancer {
  /** Polls the readiness of the process, and sends it requests while it is ready; resolves when it first is. */
  add(url: string): Promise<void>;
  /**
   * Sends a request to a ready process, or to any when none is ready, on its own connection. If the process refuses
   * the connection, the next one is tried; a request that was sent is never sent again.
   */
  send(path: string, init?: BalancedRequest): Promise<Response>;
  /** Sends `POST /chat` and gives the status of the answer. */
  chat(model: string): Promise<number>;
  close(): void;
}

/** A request with valid credentials. */
export interface BalancedRequest {
  method?: string;
  headers?: Record<string, string>;
  body?: string;
  /** Closes the caller's connection when it aborts. */
  signal?: AbortSignal;
}

const pollMs = 50;

export function createBalancer(): Balancer {
  const ready = new Map<string, boolean>();
  const checkReady = (url: string) =>
    fetch(`${url}/readyz`, { headers: { Connection: 'close' } }).then(
      ({ ok }) => void ready.set(url, ok),
      (error: unknown) => {
        // A process that has ended does not come back: its successor has another address.
        if (isRefused(error)) ready.delete(url);
      },
    );
  const polling = setInterval(() => {
    for (const url of ready.keys()) void checkReady(url);
  }, pollMs);
  let turn = 0;
  const send = async (path: string, init: BalancedRequest = {}) => {
    const isAnyReady = [...ready.values()].includes(true);
    const candidates = [...ready].flatMap(([url, isReady]) => (isReady || !isAnyReady ? [url] : []));
    turn += 1;
    for (let tried = 0; tried < candidates.length; tried += 1) {
      const answer = await sendTo(`${candidates[(turn + tried) % candidates.length]}${path}`, init);
      if (answer !== 'refused') return answer;
    }
    throw new Error('no process takes connections');
  };
  return {
    add: async (url) => {
      ready.set(url, false);
      for (await checkReady(url); ready.get(url) === false; await checkReady(url)) await delay(pollMs);
    },
    send,
    chat: async (model) => {
      const headers = { 'X-LLM': 'openai', 'X-LLM-Model': model };
      const body = '{"messages":[{"content":"Hello"}]}';
      const answer = await send('/chat', { method: 'POST', headers, body });
      await answer.arrayBuffer();
      return answer.status;
    },
    close: () => clearInterval(polling),
  };
}

async function sendTo(url: string, { headers, ...init }: BalancedRequest): Promise<Response | 'refused'> {
  const common = { Authorization: authorization, 'Content-Type': 'application/json', Connection: 'close' };
  try {
    return await fetch(url, { ...init, headers: { ...common, ...headers } });
  } catch (error) {
    if (isRefused(error)) return 'refused';
    throw error;
  }
}

const isRefused = (error: unknown): boolean =>
  (error as { cause?: NodeJS.ErrnoException }).cause?.code === 'ECONNREFUSED';
