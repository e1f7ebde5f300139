import { setTimeout as delay } from 'node:timers/promises';
import { authorization } from './deployment.js';

/** A request with valid credentials. */
interface BalancedRequest {
  method: string;
  headers: Record<string, string>;
  body: string;
}

const pollMs = 50;

export type Balancer = ReturnType<typeof createBalancer>;

/** A minimal load balancer in front of API processes that loses no request. */
export function createBalancer() {
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
  /**
   * Sends a request to a ready process, or to any when none is ready, on its own connection. If the process refuses
   * the connection, the next one is tried; a request that was sent is never sent again.
   */
  const send = async (path: string, init: BalancedRequest): Promise<Response> => {
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
    /** Polls the readiness of the process, and sends it requests while it is ready; resolves when it first is. */
    add: async (url: string): Promise<void> => {
      ready.set(url, false);
      for (await checkReady(url); ready.get(url) === false; await checkReady(url)) await delay(pollMs);
    },
    send,
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
