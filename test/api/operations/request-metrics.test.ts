import express from 'express';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { EventResponse } from '../../../api/http/event-response.js';
import { problemHandler, recordFailure, recordProvider } from '../../../api/http/problem.js';
import { createRequestCounts } from '../../../api/operations/request-metrics.js';
import { Failure } from '../../../shared/failures.js';
import { type ApiInstruments, openInstruments } from '../../../shared/metrics/instruments.js';
import { apiMetrics } from '../../../shared/metrics/metrics.js';
import { readMetrics } from '../../support/metrics.js';
import { patience } from '../../support/patience.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { serve } from '../../support/serve.js';

let instruments: ApiInstruments;
let server: Awaited<ReturnType<typeof serve>>;
let arrived: PromiseWithResolvers<void>;

beforeEach(async () => {
  instruments = openInstruments(apiMetrics);
  arrived = Promise.withResolvers();
  const counts = createRequestCounts(instruments.metrics);
  const app = express().use(counts.chats('/chat'), counts.chats('/v1/chat/completions'));
  app.post('/v1/chat/completions', (request, response) => {
    const answer = () => {
      recordProvider(response, 'bedrock');
      response.json({});
    };
    if (request.query.how !== 'late') return answer();
    arrived.resolve();
    response.once('close', answer);
  });
  app.use((_request, response, next) => {
    response.locals.startedAt = performance.now() - 3000;
    next();
  });
  app.all('/chat/stream', ({ query: { how } }, response) => {
    if (how === 'replay') response.set('Idempotency-Replayed', 'true');
    new EventResponse(response).begin({ 'X-LLM-Provider': 'anthropic' });
    if (how === 'error') recordFailure(response, new Failure('provider_error'));
    if (how === 'open') response.write(': begun\n\n');
    else response.end();
  });
  app.post('/chat', (request, response) => {
    arrived.resolve();
    if (request.query.how === 'hang') return;
    if (request.query.how === 'break') throw new Error('unexpected');
    if (request.query.how === 'fail') throw new Failure('overloaded');
    response.status(Number(request.query.how ?? 200)).json({});
  });
  app.get('/chat/:id', (_request, response) => void response.json({}));
  app.use('/blogs', counts.blog, (request, response) => {
    if (request.method === 'POST') throw new Failure('slug_taken');
    response.status(304).end();
  });
  app.use(problemHandler(createRecordingLog().log));
  server = await serve(app);
});
afterEach(() => server.close());

/** The series of requests that are not 0. */
const counted = async () => {
  const all = readMetrics((await instruments.scrape()).text);
  const own = [...all].filter(([name, value]) => /_requests_(total|in_flight)/.test(name) && value !== 0);
  return Object.fromEntries(own.map(([name, value]) => [name.replace('quillgate_', ''), value]));
};
/** The series of streams that are not 0, without prefix and labels but the code. */
const countedStreams = async () => {
  const all = readMetrics((await instruments.scrape()).text);
  const own = [...all].filter(
    ([name, value]) =>
      /^quillgate_stream(s_total|s_open|_first_event_seconds_count)/.test(name) && value !== 0,
  );
  return Object.fromEntries(
    own.map(([name, value]) => [
      /code="(\w+)"/.exec(name)?.[1] ?? name.replace(/^quillgate_streams?_|\{.*$/g, ''),
      value,
    ]),
  );
};
const becomes = (read: () => Promise<object>, expected: object) =>
  vi.waitFor(async () => expect(await read()).toEqual(expected), patience);
const ask = (path: string, provider?: string, method = 'POST', signal?: AbortSignal) =>
  fetch(`${server.url}${path}`, {
    method,
    ...(provider !== undefined && { headers: { 'X-LLM': provider } }),
    ...(signal && { signal }),
  });

describe('the counts of requests', () => {
  it('requests -> are counted by provider and by what became of them', async () => {
    await ask('/chat', 'openai');
    await ask('/chat?how=202', 'openai');
    await ask('/chat?how=fail', 'bedrock');
    await ask('/chat?how=break', 'bedrock');
    // Nothing is taken over that a caller sent.
    for (const provider of ['canary', 'OpenAI', 'openai, bedrock', '__proto__', undefined])
      await ask('/chat', provider);
    await becomes(counted, {
      'chat_requests_total{provider="none",code="ok"}': 5,
      'chat_requests_total{provider="openai",code="ok"}': 1,
      'chat_requests_total{provider="openai",code="accepted"}': 1,
      'chat_requests_total{provider="bedrock",code="overloaded"}': 1,
      'chat_requests_total{provider="bedrock",code="internal"}': 1,
    });
  });

  it('a request without an answer -> is in flight until its caller has disconnected', async () => {
    const going = new AbortController();
    const asked = ask('/chat?how=hang', 'vertexai', 'POST', going.signal).catch(() => undefined);
    await arrived.promise;
    expect(await counted()).toEqual({ 'chat_requests_in_flight{provider="vertexai"}': 1 });
    going.abort();
    await asked;
    await becomes(counted, {
      'chat_requests_total{provider="vertexai",code="client_closed"}': 1,
    });
  });

  it('a stream -> is open from its first event to its end, and counted by how it ended', async () => {
    const going = new AbortController();
    const { body } = await ask('/chat/stream?how=open', 'anthropic', 'POST', going.signal);
    expect(await countedStreams()).toEqual({ open: 1, first_event_seconds_count: 1 });
    going.abort();
    await body?.cancel().catch(() => undefined);
    await becomes(countedStreams, { client_closed: 1, first_event_seconds_count: 1 });
    const replies = [
      ask('/chat/stream', undefined, 'GET'),
      ask('/chat/stream?how=replay'),
      ask('/chat/stream?how=error'),
    ];
    for (const reply of replies) await (await reply).text();
    await becomes(countedStreams, {
      ok: 2,
      client_closed: 1,
      provider_error: 1,
      first_event_seconds_count: 2,
    });
  });

  it('the first event -> its time is taken from the arrival of the request', async () => {
    await (await ask('/chat/stream?how=error')).text();
    const all = readMetrics((await instruments.scrape()).text);
    expect(all.get('quillgate_stream_first_event_seconds_bucket{le="2.5",provider="anthropic"}')).toBe(0);
    expect(all.get('quillgate_stream_first_event_seconds_sum{provider="anthropic"}')).toBeGreaterThan(2.9);
  });

  it('requests to the blog, and reads of a chat -> the first are counted apart, the others not', async () => {
    await ask('/chat/1', 'openai', 'GET');
    await ask('/blogs', undefined, 'GET');
    await ask('/blogs');
    await becomes(counted, {
      'blog_requests_total{code="ok"}': 1,
      'blog_requests_total{code="slug_taken"}': 1,
    });
  });
});

describe('a chat completion', () => {
  it('names its provider in its body -> is counted as a chat of that', async () => {
    await fetch(`${server.url}/v1/chat/completions`, { method: 'POST' });
    expect(await counted()).toEqual({ 'chat_requests_total{provider="bedrock",code="ok"}': 1 });
  });

  it('has its body read after its client has left -> is not in flight any more', async () => {
    const leaving = new AbortController();
    const request = { method: 'POST', signal: leaving.signal };
    const left = fetch(`${server.url}/v1/chat/completions?how=late`, request).catch(() => 'left');
    await arrived.promise;
    leaving.abort();
    expect(await left).toBe('left');
    await becomes(counted, { 'chat_requests_total{provider="none",code="client_closed"}': 1 });
  });
});
