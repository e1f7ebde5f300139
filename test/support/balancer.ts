import { setTimeout as delay } from 'node:timers/promises';
import { authorization } from './deployment.js';

/** A load balancer in front of API processes, as small as one can be that loses nothing. */
export interface Balancer {
  /** From now on the process at this address is asked whether it is ready, and for answers as long as it is; resolves when it first is. */
  add(url: string): Promise<void>;
  /**
   * Sends a request to a process that is ready, on a connection of its own. One that refuses the connection is passed
   * over for the next; what has been sent once is never sent again.
   */
  send(path: string, init?: BalancedRequest): Promise<Response>;
  /** Sends `POST /chat` and gives the status of the answer. */
  chat(model: string): Promise<number>;
  close(): void;
}

/** A request with good credentials. */
export interface BalancedRequest {
  method?: string;
  headers?: Record<string, string>;
  body?: string;
  /** Aborted, the caller closes its connection. */
  signal?: AbortSignal;
}

const askEveryMs = 50;

export function createBalancer(): Balancer {
  const ready = new Map<string, boolean>();
  const ask = (url: string) =>
    fetch(`${url}/readyz`, { headers: { Connection: 'close' } }).then(
      ({ ok }) => void ready.set(url, ok),
      // Gone for good: its successor has an address of its own.
      () => void ready.delete(url),
    );
  const asking = setInterval(() => {
    for (const url of ready.keys()) void ask(url);
  }, askEveryMs);
  let turn = 0;
  const send = async (path: string, init: BalancedRequest = {}) => {
    const candidates = [...ready].flatMap(([url, isReady]) => (isReady ? [url] : []));
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
      for (await ask(url); ready.get(url) === false; await ask(url)) await delay(askEveryMs);
    },
    send,
    chat: async (model) => {
      const headers = { 'X-LLM': 'openai', 'X-LLM-Model': model };
      const body = '{"messages":[{"content":"Hello"}]}';
      const answer = await send('/chat', { method: 'POST', headers, body });
      await answer.arrayBuffer();
      return answer.status;
    },
    close: () => clearInterval(asking),
  };
}

async function sendTo(url: string, { headers, ...init }: BalancedRequest): Promise<Response | 'refused'> {
  const common = { Authorization: authorization, 'Content-Type': 'application/json', Connection: 'close' };
  try {
    return await fetch(url, { ...init, headers: { ...common, ...headers } });
  } catch (error) {
    const { cause } = error as { cause?: NodeJS.ErrnoException };
    if (cause?.code === 'ECONNREFUSED') return 'refused';
    throw error;
  }
}
