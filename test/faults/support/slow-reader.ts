import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import { promptCanary } from '../../support/canaries.js';
import { authorization } from '../../support/deployment.js';
import type { StreamCall } from '../../support/event-streams.js';

/** The deltas of the streams that are read slowly: characters of three bytes, 11 MB in all, which no socket holds. */
export const deltas = { count: 900, length: 4096 };
export const replyBytes = 3 * deltas.count * deltas.length;
export const slowKey = { 'Idempotency-Key': 'slow-readers' };

/** Joins the stream, and reads the head of the response alone. */
export async function openUnread(
  url: string,
  chat: Pick<StreamCall, 'model' | 'headers'> | undefined,
): Promise<IncomingMessage> {
  const headers = {
    Authorization: authorization,
    ...chat?.headers,
    Accept: 'text/event-stream',
    'Content-Type': 'application/json',
    'X-LLM': 'openai',
    'X-LLM-Model': chat?.model,
  };
  const asking = request(`${url}/chat`, { method: 'POST', headers });
  asking.end(JSON.stringify({ messages: [{ content: promptCanary }] }));
  const [response] = (await once(asking, 'response')) as [IncomingMessage];
  expect(response.statusCode).toBe(200);
  response.pause();
  return response;
}

/** Reads it to its end, or until it is cut; with a signal, one piece of it a second until that aborts. */
export async function readRest(
  response: IncomingMessage,
  signal?: AbortSignal,
): Promise<{ bytes: number; text: string }> {
  let bytes = 0;
  let text = '';
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      text = (text + chunk.toString('latin1')).slice(-1000);
      if (signal?.aborted === false) await delay(1000);
    }
  } catch {}
  return { bytes, text };
}
