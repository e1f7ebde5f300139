import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import express, { type Response as HttpResponse } from 'express';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { ChatReply } from '../../../api/chat/chat-command.js';
import { type ReplySink, sendStream } from '../../../api/chat-apis/serve.js';
import { EventResponse } from '../../../api/http/event-response.js';
import { Failure } from '../../../shared/failures.js';
import { greeting } from '../../support/app.js';
import { countOwnTimers } from '../../support/own-timers.js';
import { type Served, serve } from '../../support/serve.js';

let served: Served;
let arrived: PromiseWithResolvers<HttpResponse>;
let ownTimers: () => number;

beforeEach(async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] });
  ownTimers = countOwnTimers('api/http');
  arrived = Promise.withResolvers();
  served = await serve(express().use((_request, response) => arrived.resolve(response)));
});
afterEach(async () => {
  vi.useRealTimers();
  expect(ownTimers()).toBe(0);
  await served.close();
});

const headers = vi.fn(() => ({ 'X-LLM-Provider': 'openai' }));

/** A sink of an API whose clients count events alone, and want one every so often from the beginning on. */
class EarlySink implements ReplySink {
  readonly #events: EventResponse;
  #hasStarted = false;

  constructor(response: HttpResponse) {
    const begin = { afterMs: 25_000, headers };
    this.#events = new EventResponse(response, { sign: { event: 'ping', data: '{}' }, begin });
  }

  get hasBegun(): boolean {
    return this.#events.hasBegun;
  }

  begin(): void {
    this.#events.begin({ 'X-LLM-Provider': 'bedrock' });
    if (!this.#hasStarted) this.#events.send({ event: 'start', data: '1' });
    this.#hasStarted = true;
  }

  write(text: string): boolean {
    this.begin();
    return this.#events.send({ event: 'text', data: text });
  }

  drained = async () => undefined;

  done(): void {
    this.#events.end({ event: 'end', data: '1' });
  }

  fail({ code }: Failure): void {
    this.#events.end({ event: 'error', data: code });
  }
}

/** A request that is being answered, and what its client reads of the answer. */
async function open() {
  headers.mockClear();
  const client = get(served.url, { agent: false });
  client.on('error', () => undefined);
  const answer = once(client, 'response') as Promise<[IncomingMessage]>;
  answer.catch(() => undefined);
  const response = await arrived.promise;
  const read = async () => {
    const [message] = await answer;
    let text = '';
    for await (const chunk of message.setEncoding('utf8')) text += chunk;
    return { status: message.statusCode, provider: message.headers['x-llm-provider'], text };
  };
  return { client, response, read, sink: new EarlySink(response) };
}

const ping = 'event: ping\ndata: {}\n\n';
const start = 'event: start\ndata: 1\n\n';
const end = 'event: end\ndata: 1\n\n';
const hi = 'event: text\ndata: Hi\n\n';

describe('a response that may begin early', () => {
  it('has no part in time → it begins with a sign of life, has one every 15 s, and then its parts', async () => {
    const { response, read, sink } = await open();
    vi.advanceTimersByTime(24_999);
    expect([response.headersSent, sink.hasBegun]).toEqual([false, false]);
    vi.advanceTimersByTime(1);
    expect(sink.hasBegun).toBe(true);
    vi.advanceTimersByTime(15_000);
    sink.write('Hi');
    vi.advanceTimersByTime(15_000);
    await sendStream(response, sink, Promise.resolve<ChatReply>(greeting));
    const text = [ping, ping, start, hi, ping, end].join('');
    expect(await read()).toEqual({ status: 200, provider: 'openai', text });
  });

  it('has a part in time → that begins it', async () => {
    const { response, read, sink } = await open();
    vi.advanceTimersByTime(20_000);
    sink.write('Hi');
    vi.advanceTimersByTime(14_999);
    await sendStream(response, sink, Promise.resolve<ChatReply>(greeting));
    const text = [start, hi, end].join('');
    expect(await read()).toEqual({ status: 200, provider: 'bedrock', text });
    expect(headers).not.toHaveBeenCalled();
  });

  it('fails after it has begun so → the failure is an event', async () => {
    const { response, read, sink } = await open();
    vi.advanceTimersByTime(25_000);
    await sendStream(response, sink, Promise.reject(new Failure('provider_timeout')));
    const text = `${ping}event: error\ndata: provider_timeout\n\n`;
    expect(await read()).toEqual({ status: 200, provider: 'openai', text });
    expect(response.locals.failureCode).toBe('provider_timeout');
  });

  it('fails before → the failure is thrown, and no timer is left of its answer', async () => {
    const { response, read, sink } = await open();
    vi.advanceTimersByTime(24_999);
    const failure = new Failure('overloaded');
    await expect(sendStream(response, sink, Promise.reject(failure))).rejects.toBe(failure);
    const closed = once(response, 'close');
    response.status(503).send('busy');
    expect(await read()).toMatchObject({ status: 503, text: 'busy' });
    await closed;
  });

  it('has another answer, which its client reads slowly → it stays that', async () => {
    const { client, response } = await open();
    response.status(500).send('x'.repeat(20_000_000));
    vi.advanceTimersByTime(60_000);
    expect([response.statusCode, headers.mock.calls]).toEqual([500, []]);
    const closed = once(response, 'close');
    client.destroy();
    await closed;
  });

  it('has a client that leaves, or that has left → it does not begin', async () => {
    const { client, response, sink } = await open();
    const closed = once(response, 'close');
    client.destroy();
    await closed;
    expect(ownTimers()).toBe(0);
    const late = new EarlySink(response);
    vi.advanceTimersByTime(60_000);
    expect([sink.hasBegun, late.hasBegun, headers.mock.calls]).toEqual([false, false, []]);
  });
});
