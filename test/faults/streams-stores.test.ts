import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import { providerIds } from '../../shared/contract.js';
import { promptCanary } from '../support/canaries.js';
import { authorization } from '../support/deployment.js';
import { withLag } from '../support/lateness.js';
import { codeOf } from './support/balance.js';
import type { Books } from './support/books.js';
import { openConnectionKiller } from './support/connection-killer.js';
import { expectCodes, timeUntil } from './support/expectations.js';
import { fault } from './support/fault.js';
import { footprintOf } from './support/footprint.js';
import { startOwnRedis } from './support/own-redis.js';
import { openStoreWire } from './support/store-wire.js';
import type { AskedStream } from './support/streams.js';

const open = 20;
const openStreams = (books: Books, model: string): AskedStream[] =>
  Array.from({ length: open }, (_, n) =>
    books.stream({ provider: providerIds[n % providerIds.length] ?? 'openai', model }),
  );

const away = { timed: true, id: 'T7', callsPerRequest: 2 } as const;

fault(
  { ...away, injected: `Redis killed with -9, back after 3 s, ${open} streams open`, stores: ['redis'] },
  async (books) => {
    const redis = await startOwnRedis(books);
    await books.start({ store: redis.store, workers: 2 });
    return duringOutage(books, { begin: redis.kill, end: redis.start });
  },
);

fault(
  { ...away, injected: `PostgreSQL out of reach for 3 s, ${open} streams open`, stores: ['postgres'] },
  async (books) => {
    const { wire, store } = await openStoreWire(books);
    await books.start({ store, workers: 2 });
    return duringOutage(books, { begin: wire.cut, end: wire.mend });
  },
);

async function duringOutage(
  books: Books,
  outage: { begin(): Promise<void>; end(): Promise<void> },
): Promise<string> {
  const asked = openStreams(books, 'sim-stream-300-20');
  await Promise.all(asked.map(({ begun }) => begun));
  await outage.begin();
  await delay(3000);
  await outage.end();
  const told = await endsOf(asked);
  const wellMs = await timeUntil(async () => codeOf(await books.stream().end) === 'ok');
  return `${told}; serves ${wellMs} ms after that`;
}

const times = 20;

fault(
  {
    id: 'T7',
    injected: `all connections to the store killed ${times} times, ${open} streams open`,
    callsPerRequest: 2,
  },
  async (books) => {
    const { stores } = await books.start({ workers: 2 });
    const killer = await openConnectionKiller(stores);
    books.release(killer.close);
    const asked = openStreams(books, 'sim-stream-400-20');
    await Promise.all(asked.map(({ begun }) => begun));
    for (let time = 0; time < times; time += 1) {
      await delay(500);
      await killer.killAll();
    }
    return endsOf(asked);
  },
);

/** How many streams have been told to their ends; a job whose lock was lost meanwhile writes another text. */
async function endsOf(asked: readonly AskedStream[]): Promise<string> {
  const ends = await Promise.all(asked.map(({ end }) => end));
  // A job that is run again so late that it makes no call ends as `timeout`, where the report that it was begun anew is lost.
  expectCodes(ends, ['ok', 'internal', 'timeout']);
  const whole = ends.filter((end) => codeOf(end) === 'ok').length;
  for (const { body, status } of ends) if (status !== 200) expect(body.retryable).toBe(true);
  return `${whole} of ${asked.length} done, the others error, retryable`;
}

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
    await Promise.all(openStreams(books, 'sim-echo').map(({ end }) => end));
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
