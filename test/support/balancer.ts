import { request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { authorization } from './deployment.js';

/** A load balancer in front of API processes, as small as one can be that loses nothing. */
export interface Balancer {
  /** From now on the process at this address is asked whether it is ready, and for answers as long as it is; resolves when it first is. */
  add(url: string): Promise<void>;
  /**
   * Sends `POST /chat` to a process that is ready, on a connection of its own. One that refuses the connection is passed
   * over for the next; what has been sent once is never sent again. Gives the status of the answer.
   */
  chat(model: string): Promise<number>;
  close(): void;
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
  return {
    add: async (url) => {
      ready.set(url, false);
      for (await ask(url); ready.get(url) === false; await ask(url)) await delay(askEveryMs);
    },
    chat: async (model) => {
      const candidates = [...ready].flatMap(([url, isReady]) => (isReady ? [url] : []));
      turn += 1;
      for (let tried = 0; tried < candidates.length; tried += 1) {
        const status = await send(candidates[(turn + tried) % candidates.length] ?? '', model);
        if (status !== 'refused') return status;
      }
      throw new Error('no process takes connections');
    },
    close: () => clearInterval(asking),
  };
}

function send(url: string, model: string): Promise<number | 'refused'> {
  const headers = {
    Authorization: authorization,
    'Content-Type': 'application/json',
    'X-LLM': 'openai',
    'X-LLM-Model': model,
  };
  return new Promise((resolve, reject) => {
    const sending = request(`${url}/chat`, { method: 'POST', headers, agent: false }, (response) => {
      response.resume().once('end', () => resolve(response.statusCode ?? 0));
      response.once('error', reject);
    });
    sending.once('error', (error: NodeJS.ErrnoException) =>
      error.code === 'ECONNREFUSED' ? resolve('refused') : reject(error),
    );
    sending.end('{"messages":[{"content":"Hello"}]}');
  });
}
