import type { ServerResponse } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { startSimulator } from '../../../dev/simulator/server.js';
import { EventBytes } from '../../../workers/providers/event-bytes.js';
import { HttpClient } from '../../../workers/providers/http-client.js';
import { providerSetups } from '../../support/providers.js';
import { serve } from '../../support/serve.js';

const simulator = await startSimulator({ port: 0 });
afterAll(() => simulator.close());

const turns = [{ role: 'user' as const, content: 'Hello' }];
const never = new AbortController().signal;
const request = { turns, maxOutputTokens: 10, signal: never };

describe.each(providerSetups)('$name', async ({ load }) => {
  const provider = await load(simulator.url);
  afterAll(() => provider.close());

  it('reports activity at every event of a stream, in time for its text', async () => {
    const activityAt: number[] = [];
    const onActivity = vi.fn();
    const onDelta = () => void activityAt.push(onActivity.mock.calls.length);
    // The pause has the events come one by one.
    const model = 'sim-stream-5-5';
    const { text } = await provider.run({ ...request, model, onActivity }, onDelta);
    expect(text).not.toBe('');
    expect(activityAt.length).toBeGreaterThan(1);
    for (const [n, count] of activityAt.entries()) expect(count).toBeGreaterThan(activityAt[n - 1] ?? 0);
  });
});

/** Answers with a stream of events, which the test writes. */
async function startEventServer() {
  const answering = Promise.withResolvers<ServerResponse>();
  const server = await serve((_, response) => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    response.flushHeaders();
    answering.resolve(response);
  });
  return { ...server, answering: answering.promise };
}

it('a ping of Anthropic -> counts as activity', async () => {
  const server = await startEventServer();
  const provider = await providerSetups.find(({ id }) => id === 'anthropic')?.load(server.url);
  const active = Promise.withResolvers<void>();
  const running = provider?.run({ ...request, model: 'm', onActivity: active.resolve }, () => {});
  const response = await server.answering;
  const write = (type: string, data: object = {}) =>
    response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`);
  write('ping');
  await active.promise;
  write('content_block_delta', { index: 0, delta: { type: 'text_delta', text: 'Hello' } });
  write('message_delta', { delta: { stop_reason: 'end_turn' } });
  write('message_stop');
  response.end();
  expect(await running).toMatchObject({ text: 'Hello', reason: 'stop' });
  provider?.close();
  await server.close();
});

describe('HttpClient', () => {
  it('reports each line of a stream, not single bytes, and loses nothing that is read late', async () => {
    const server = await startEventServer();
    const http = new HttpClient({ maxResponseBytes: 1000 });
    const onActivity = vi.fn();
    const sending = http.send({
      ...{ origin: server.url, path: '/', method: 'POST', headers: {}, body: '', onActivity },
    });
    const response = await server.answering;
    const { body } = await sending;
    if (!(body instanceof EventBytes)) throw new Error('no stream of events');
    const read = async () => (await body.next()).value?.toString();
    response.write(': ');
    for (let turn = 0; turn < 20; turn += 1) await nextTurn();
    expect([await read(), onActivity.mock.calls.length]).toEqual([': ', 0]);
    response.write('ping\n');
    expect([await read(), onActivity.mock.calls.length]).toEqual(['ping\n', 1]);
    response.end();
    expect((await body.next()).done).toBe(true);
    http.close();
    await server.close();
  });
});
