import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import { promptCanary } from '../support/canaries.js';
import { authorization } from '../support/deployment.js';
import { withLag } from '../support/lateness.js';
import { codeOf } from './support/balance.js';
import { expectCodes } from './support/expectations.js';
import { fault } from './support/fault.js';
import { footprintOf } from './support/footprint.js';

const open = 10;
const deltas = { count: 2000, length: 4096 };
const replyLength = deltas.count * deltas.length;
const mebibyte = 1_048_576;

fault(
  {
    id: 'T8',
    timed: true,
    injected: `${open} clients that read nothing of a stream of 8 MB, and eight that read theirs`,
    timeoutMs: 90_000,
  },
  async (books) => {
    const { api, url } = await books.start({ variables: { OPENAI_CONCURRENCY: '1' } });
    await Promise.all(Array.from({ length: open }, () => books.stream({ model: 'sim-echo' }).end));
    const before = footprintOf([api]);
    // They join while the chat is queued.
    await books.ask({ model: 'sim-latency-2000' }).arrived();
    const model = `sim-deltas-${deltas.count}-${deltas.length}@T8`;
    const writing = books.stream({ model, headers: slowKey });
    const slow = await Promise.all(Array.from({ length: open }, () => openUnread(url, model)));
    expect(codeOf(await writing.end)).toBe('ok');
    const { result: tookMs, lagMs } = await withLag(async () => {
      const others = Array.from({ length: 8 }, () =>
        books.stream({ provider: 'anthropic', model: 'sim-stream-100-20' }),
      );
      const ends = await Promise.all(others.map(({ end }) => end));
      expectCodes(ends, ['ok']);
      return Math.max(...ends.map((end) => end.tookMs));
    });
    expect(tookMs).toBeLessThan(100 * 20 + 1000 + lagMs);
    const megabytes = footprintOf([api]).megabytes - before.megabytes;
    // The one reply several times over, with what is not collected yet; it does not grow with what is not read.
    expect(megabytes).toBeLessThan((2 * open * replyLength) / mebibyte);
    await delay(25_000);
    const read = await Promise.all(slow.map(readRest));
    for (const { bytes, text } of read) {
      expect(bytes).toBeLessThan(replyLength);
      expect(text).not.toContain('event: done');
    }
    const most = Math.max(...read.map(({ bytes }) => bytes));
    return `the others done after ${Math.round(tookMs)} ms; the API's memory ${megabytes} MB more; cut after ${most} bytes at most`;
  },
);

const slowKey = { 'Idempotency-Key': 'slow-readers' };

/** Joins the stream, and reads the head of the response alone. */
async function openUnread(url: string, model: string): Promise<IncomingMessage> {
  const headers = {
    Authorization: authorization,
    Accept: 'text/event-stream',
    'Content-Type': 'application/json',
    'X-LLM': 'openai',
    'X-LLM-Model': model,
    ...slowKey,
  };
  const asking = request(`${url}/chat`, { method: 'POST', headers });
  asking.end(JSON.stringify({ messages: [{ content: promptCanary }] }));
  const [response] = (await once(asking, 'response')) as [IncomingMessage];
  expect(response.statusCode).toBe(200);
  response.pause();
  return response;
}

/** What is there of it until its end, or until it is cut. */
async function readRest(response: IncomingMessage): Promise<{ bytes: number; text: string }> {
  let bytes = 0;
  let text = '';
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      text = (text + chunk.toString('latin1')).slice(-1000);
    }
  } catch {}
  return { bytes, text };
}
