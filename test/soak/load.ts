import { Agent, type IncomingMessage, request } from 'node:http';
import { json } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { type ProviderId, providerIds } from '../../shared/contract.js';
import { chatHeaders, messages } from '../bench/gateway.js';
import type { Books } from './books.js';
import { type Kind, pickKind } from './mix.js';

interface LoadOptions {
  chatUrl: string;
  perSecond: number;
  minutes: number;
  /** So many requests may be on their way at once; what comes on top is held back. */
  maxInFlight: number;
  books: Books;
  signal: AbortSignal;
}

const tickMs = 20;
const maxPatienceMs = 60_000;
const lastAnswersMs = 70_000;

/** Sends requests at their times, whether or not earlier ones are answered. Resolves when the last has ended. */
export async function sendLoad(options: LoadOptions): Promise<void> {
  const { perSecond, minutes, books, signal } = options;
  const agent = new Agent({ keepAlive: true });
  const startedAt = performance.now();
  const elapsedMs = () => performance.now() - startedAt;
  for (let due = 0; elapsedMs() < minutes * 60_000; await delay(tickMs, undefined, { signal })) {
    for (; due < (elapsedMs() * perSecond) / 1000; due += 1) sendOne(options, agent);
  }
  const giveUpAt = elapsedMs() + lastAnswersMs;
  while (books.inFlight > 0 && elapsedMs() < giveUpAt) await delay(tickMs, undefined, { signal });
  // What is still open had no answer.
  books.unanswered += books.inFlight;
  agent.destroy();
}

function sendOne({ books, maxInFlight, chatUrl }: LoadOptions, agent: Agent): void {
  if (books.inFlight >= maxInFlight) {
    books.heldBack += 1;
    return;
  }
  const kind = pickKind();
  const provider = providerIds[books.sent % providerIds.length] ?? 'openai';
  books.sent += 1;
  const leaving = new AbortController();
  if (kind.leaves) setTimeout(() => leaving.abort(), Math.random() * kind.busyMs * 2);
  ask({ chatUrl, agent, kind, provider, signal: leaving.signal }).then(
    (answer) => books.answered(kind, answer),
    () => {
      if (leaving.signal.aborted) books.left += 1;
      else books.unanswered += 1;
    },
  );
}

interface Call {
  chatUrl: string;
  agent: Agent;
  kind: Kind;
  provider: ProviderId;
  signal: AbortSignal;
}

/** The status of a reply, or the code of the problem. */
async function ask({ chatUrl, agent, kind, provider, signal }: Call): Promise<string> {
  const headers = { ...chatHeaders, 'X-LLM': provider, 'X-LLM-Model': kind.model };
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    request(chatUrl, { method: 'POST', agent, headers, signal, timeout: maxPatienceMs }, resolve)
      .on('error', reject)
      .on('timeout', () => reject(new Error('no answer')))
      .end(JSON.stringify({ messages }));
  });
  const body = (await json(response)) as { response?: unknown; code?: string };
  return response.statusCode === 200 && typeof body.response === 'string'
    ? '200'
    : (body.code ?? `${response.statusCode}`);
}
