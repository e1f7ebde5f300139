import { getEventListeners, once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import express, { type Response as HttpResponse, type Request } from 'express';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { ChatReply } from '../../../../api/chat/chat-command.js';
import {
  acceptsEventStream,
  EventStream,
  readLastEventId,
} from '../../../../api/chat-apis/quillgate/event-stream.js';
import { sendStream } from '../../../../api/chat-apis/serve.js';
import { Failure } from '../../../../shared/failures.js';
import { countOwnTimers } from '../../../support/own-timers.js';
import { type Served, serve } from '../../../support/serve.js';

let served: Served;
let arrived: PromiseWithResolvers<{ request: Request; response: HttpResponse }>;

let ownTimers: () => number;
beforeEach(async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] });
  ownTimers = countOwnTimers('api/chat-apis');
  arrived = Promise.withResolvers();
  const app = express().use((request, response) => arrived.resolve({ request, response }));
  served = await serve(app);
});
afterEach(async () => {
  vi.useRealTimers();
  await served.close();
});

/** A request that is being answered, and what its client reads when it does. */
async function connect(headers: Record<string, string> = {}) {
  const client = get(served.url, { headers, agent: false });
  client.on('error', () => {});
  const answer = once(client, 'response') as Promise<[IncomingMessage]>;
  answer.catch(() => {});
  const { request, response } = await arrived.promise;
  const read = async () => {
    let text = '';
    for await (const chunk of (await answer)[0].setEncoding('utf8')) text += chunk;
    return text;
  };
  return { client, request, response, answer, read };
}

async function open() {
  const connection = await connect();
  return { ...connection, events: new EventStream(connection.response, { provider: 'anthropic' }) };
}

const ok: ChatReply = {
  kind: 'completed',
  completion: {
    ...{ kind: 'ok', text: 'Hello', model: 'm', queueMs: 1, providerMs: 1 },
    usage: { inputTokens: 1, outputTokens: 2 },
  },
};
const at = (offset: number) => ({ callId: 'call', offset });
/** More than the socket takes from a client that does not read. */
const large = 'a'.repeat(30_000_000);

describe('EventStream', () => {
  it('gets a reply → it sends deltas with their ids, and then the whole', async () => {
    const { events, response, answer, read } = await open();
    response.set('X-Request-Id', 'r');
    const text = read();
    expect(events.write('Hel"\n', at(5))).toBe(true);
    expect(events.write('lo', at(7))).toBe(true);
    await sendStream(response, events, Promise.resolve(ok));
    expect((await text).split('\n\n')).toEqual([
      'id: call.5\nevent: delta\ndata: {"delta":"Hel\\"\\n"}',
      'id: call.7\nevent: delta\ndata: {"delta":"lo"}',
      'event: done\ndata: {"response":"Hello","finishReason":"stop","provider":"anthropic","model":"m","usage":{"inputTokens":1,"outputTokens":2}}',
      '',
    ]);
    const [{ statusCode, headers }] = await answer;
    expect([statusCode, headers]).toMatchObject([
      200,
      {
        'content-type': 'text/event-stream; charset=utf-8',
        'x-llm-provider': 'anthropic',
        'x-accel-buffering': 'no',
        'x-request-id': 'r',
      },
    ]);
    expect(ownTimers()).toBe(0);
  });

  it('has no more text to send, because its reader has all of it → its headers name the changes of both sides', async () => {
    const { response, answer } = await connect();
    const events = new EventStream(response, { provider: 'anthropic', changes: ['dropped-blank'] });
    const { completion } = ok as Extract<ChatReply, { kind: 'completed' }>;
    const replying = { ...ok, completion: { ...completion, changes: ['continued'] } } as ChatReply;
    await sendStream(response, events, Promise.resolve(replying));
    const [{ headers }] = await answer;
    expect(headers['x-conversation-changes']).toBe('continued, dropped-blank');
  });

  it('has characters at which some readers end a line → they are escaped', async () => {
    const { events, response, read } = await open();
    const text = read();
    const said = 'a\u0085b\u2028c\u2029d\u000be';
    events.write(said, at(9));
    await sendStream(response, events, Promise.resolve(ok));
    const [, data = ''] = /data: (.*)/.exec(await text) ?? [];
    expect(data).toMatch(/^[ -~]+$/);
    expect(JSON.parse(data)).toEqual({ delta: said });
  });

  it('gets a reply that was cut at the token limit → it says so', async () => {
    const { events, response, read } = await open();
    const text = read();
    await sendStream(
      response,
      events,
      Promise.resolve({ ...ok, completion: { ...ok.completion, kind: 'truncated' } }),
    );
    expect(await text).toContain('"finishReason":"length"');
  });

  it('fails after it has begun → it ends with an error, in our own words', async () => {
    const { events, response, read } = await open();
    const text = read();
    events.write('Hel', at(3));
    await sendStream(
      response,
      events,
      Promise.reject(new Failure('provider_timeout', { cause: new Error('secret') })),
    );
    const [, error = ''] = (await text).split('\n\n');
    expect(error).toMatch(/^event: error\ndata: \{.*"code":"provider_timeout"/);
    expect(error).not.toContain('secret');
    expect(response.locals.failureCode).toBe('provider_timeout');
  });

  it('fails before its first event → the response is left to others', async () => {
    const { events, response } = await open();
    vi.advanceTimersByTime(60_000);
    const failure = new Failure('provider_timeout');
    await expect(sendStream(response, events, Promise.reject(failure))).rejects.toBe(failure);
    expect([response.headersSent, ownTimers()]).toEqual([false, 0]);
  });

  it('fails as nobody expected → it is left to others', async () => {
    const { events, response } = await open();
    events.write('Hel', at(3));
    await expect(sendStream(response, events, Promise.reject(new TypeError('x')))).rejects.toThrow('x');
  });

  it('has begun → it sends a comment every 15 seconds', async () => {
    const { events, response, read } = await open();
    vi.advanceTimersByTime(15_000);
    expect(response.headersSent).toBe(false);
    const text = read();
    events.write('a', at(1));
    vi.advanceTimersByTime(14_999);
    events.write('b', at(2));
    vi.advanceTimersByTime(15_001);
    await sendStream(response, events, Promise.resolve(ok));
    const lines = (await text).split('\n').map((line) => /^event: (.*)|^:.*/.exec(line));
    const kinds = lines.flatMap((line) => (line ? [line[1] ?? line[0]] : []));
    expect(kinds).toEqual(['delta', 'delta', ': still there', ': still there', 'done']);
  });

  it('has a client that makes an event of every blank line → none of them is without data', async () => {
    const { events, response, read } = await open();
    const text = read();
    for (const n of [1, 2]) {
      events.write('a', at(n));
      vi.advanceTimersByTime(30_000);
    }
    await sendStream(response, events, Promise.resolve(ok));
    // As openai-go read a stream until its pull request 621: comments are no part of an event, blank lines end it.
    const blocks = (await text).split(/(?<=^|\n)\n/).slice(0, -1);
    const data = blocks.map((block) => block.split('\n').filter((line) => line.startsWith('data:')));
    expect(data.map(({ length }) => length)).toEqual([1, 1, 1]);
  });

  it('has a client that has not read the end yet → it sends no comment', async () => {
    const { events, response } = await open();
    const errors: unknown[] = [];
    response.on('error', (error) => errors.push(error));
    events.write(large, at(large.length));
    await sendStream(response, events, Promise.resolve(ok));
    vi.advanceTimersByTime(60_000);
    await new Promise((resolve) => setImmediate(resolve));
    expect([response.writableFinished, errors]).toEqual([false, []]);
  });

  it('has a client that has left → it sends nothing', async () => {
    const { events, response, client } = await open();
    events.write('a', at(1));
    const closed = once(response, 'close');
    client.destroy();
    await closed;
    expect(ownTimers()).toBe(0);
    expect(events.write('b', at(2))).toBe(false);
    await sendStream(response, events, Promise.resolve(ok));
  });
});

describe('a slow client', () => {
  it('reads what there was → it gets more, and leaves nothing', async () => {
    const { events, response, read } = await open();
    const listeners = getEventListeners(response, 'close').length;
    expect(events.write(large, at(large.length))).toBe(false);
    const drained = events.drained();
    const text = read();
    await drained;
    for (let n = 0; n < 20; n += 1) await events.drained();
    expect(getEventListeners(response, 'close').length).toBe(listeners);
    expect(getEventListeners(response, 'drain')).toEqual([]);
    await sendStream(response, events, Promise.resolve(ok));
    expect((await text).length).toBeGreaterThan(large.length);
    expect(ownTimers()).toBe(0);
  });

  it('reads nothing for 20 seconds → it is disconnected', async () => {
    const { events, response } = await open();
    events.write(large, at(large.length));
    const drained = expect(events.drained()).rejects.toMatchObject({ code: 'timeout' });
    vi.advanceTimersByTime(19_999);
    expect(response.destroyed).toBe(false);
    vi.advanceTimersByTime(1);
    await drained;
    expect(response.destroyed).toBe(true);
  });

  it('leaves → it is not waited for', async () => {
    const { events, client } = await open();
    events.write(large, at(large.length));
    const drained = expect(events.drained()).rejects.toMatchObject({ code: 'timeout' });
    client.destroy();
    await drained;
    expect(ownTimers()).toBe(0);
  });
});

describe('a request', () => {
  it.each([
    ['text/event-stream', true],
    ['text/*', false],
    ['text/*, */*', false],
    ['application/json;q=0.5, text/event-stream', true],
    ['text/event-stream;q=0.9, */*;q=0.1', true],
    ['TEXT/EVENT-STREAM', true],
    ['text/event-stream; charset=utf-8', true],
    ['text/event-stream;charset=UTF-8;q=0.9, application/json;q=0.1', true],
    ['text/event-stream; charset=utf-8;q=0.1, application/json', false],
    ['text/event-stream; charset=utf-16', false],
    ['*/*', false],
    ['', false],
    ['application/json', false],
    ['text/event-stream;q=0', false],
    ['text/event-stream;q=0.1, application/json;q=0.9', false],
    ['text/event-stream;q=0.1, */*', false],
    ['text/html', false],
    ['nonsense', false],
    [undefined, false],
  ])('has Accept: %s → a stream is taken: %s', async (accept, expected) => {
    const { request } = await connect(accept === undefined ? {} : { Accept: accept });
    expect(acceptsEventStream(request)).toBe(expected);
  });
});

describe('Last-Event-ID', () => {
  it.each([
    ['a1b2c3d4.0', { callId: 'a1b2c3d4', offset: 0 }],
    ['0.17', { callId: '0', offset: 17 }],
    ['', undefined],
    [undefined, undefined],
  ])('is %j → the place is %j', (header, position) => {
    expect(readLastEventId(header)).toEqual(position);
  });

  const errors = [expect.objectContaining({ pointer: 'Last-Event-ID' })];
  it.each([
    ...[' ', '5', '.5', 'a.', 'a.-1', 'a.1.5', 'a.1e3', 'a b.1', 'a.1\n'],
    ...[`${'a'.repeat(65)}.1`, `a.${'9'.repeat(16)}`],
  ])('is %j → refused', (header) => {
    const refusal = { code: 'invalid_request', facts: expect.objectContaining({ errors }) };
    expect(() => readLastEventId(header)).toThrow(expect.objectContaining(refusal));
  });
});
