import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import express, { type Response as HttpResponse } from 'express';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ChatReply } from '../../../api/chat/chat-command.js';
import type { Completion } from '../../../api/chat/chat-result.js';
import { CompletionStream } from '../../../api/openai/completion-stream.js';
import type { ProviderId } from '../../../shared/contract.js';
import { Failure } from '../../../shared/failures.js';
import { isChunkOfOpenAi } from '../../support/openai-schemas.js';
import { type Served, serve } from '../../support/serve.js';

let served: Served;
let arrived: PromiseWithResolvers<HttpResponse>;
beforeEach(async () => {
  arrived = Promise.withResolvers();
  served = await serve(express().use((_request, response) => arrived.resolve(response)));
});
afterEach(() => served.close());

async function open({
  includesUsage = false,
  isFlex = false,
  provider = 'bedrock',
}: {
  includesUsage?: boolean;
  isFlex?: boolean;
  provider?: ProviderId;
} = {}) {
  const client = get(served.url, { agent: false });
  client.on('error', () => {});
  const answer = once(client, 'response') as Promise<[IncomingMessage]>;
  answer.catch(() => {});
  const response = await arrived.promise;
  const head = { id: 'the-id', created: 17, provider, model: `${provider}/asked`, isFlex };
  const marked: unknown[] = [];
  const stream = new CompletionStream({
    ...{ response, head: () => head, includesUsage },
    markIgnored: (...args) => void marked.push(args),
  });
  const read = async () => {
    let text = '';
    for await (const chunk of (await answer)[0].setEncoding('utf8')) text += chunk;
    return text.split('\n\n').map((event) => {
      const data = event.replace(/^data: /, '');
      return data.startsWith('{') ? (JSON.parse(data) as Record<string, unknown>) : data;
    });
  };
  return { client, response, stream, read, answer, marked };
}

const uncounted: Completion = { kind: 'ok', text: 'Hello', model: 'answered', queueMs: 1, providerMs: 1 };
const completion: Completion = { ...uncounted, usage: { inputTokens: 1, outputTokens: 2 } };
const toReply = (completion: Completion): ChatReply => ({ kind: 'completed', completion });
const reply = toReply(completion);
const chunk = {
  id: 'chatcmpl-the-id',
  object: 'chat.completion.chunk',
  created: 17,
};
const choice = (delta: object, reason: string | null = null) => [
  { index: 0, delta, logprobs: null, finish_reason: reason },
];
const begun = {
  ...chunk,
  model: 'bedrock/asked',
  choices: choice({ role: 'assistant', content: '', refusal: null }),
};
const said = (content: string) => ({ ...chunk, model: 'bedrock/asked', choices: choice({ content }) });
const ended = (reason: string) => ({ ...chunk, model: 'bedrock/asked', choices: choice({}, reason) });

describe('CompletionStream', () => {
  it('sends the role, each piece, the finish reason once, and [DONE]', async () => {
    const { stream, read, answer } = await open();
    const chunks = read();
    expect(stream.write('Hel"\n')).toBe(true);
    stream.write('lo');
    await stream.end(Promise.resolve(reply));
    expect(await chunks).toEqual([begun, said('Hel"\n'), said('lo'), ended('stop'), '[DONE]', '']);
    const [{ statusCode, headers }] = await answer;
    expect([statusCode, headers]).toMatchObject([
      200,
      {
        'content-type': 'text/event-stream; charset=utf-8',
        'x-llm-provider': 'bedrock',
        'x-accel-buffering': 'no',
      },
    ]);
    expect(headers).not.toHaveProperty('content-length');
  });

  it('tells the token counts in a chunk of their own, and null before, if asked to', async () => {
    const { stream, read } = await open({ includesUsage: true });
    const chunks = read();
    stream.write('Hi');
    await stream.end(Promise.resolve(reply));
    const usage = null;
    expect(await chunks).toEqual([
      { ...begun, usage },
      { ...said('Hi'), usage },
      { ...ended('stop'), usage },
      {
        ...{ ...chunk, model: 'bedrock/asked', choices: [] },
        usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 },
      },
      '[DONE]',
      '',
    ]);
  });

  it('has no chunk without a choice where the provider does not count', async () => {
    const { stream, read } = await open({ includesUsage: true });
    const chunks = read();
    await stream.end(Promise.resolve(toReply(uncounted)));
    expect(await chunks).toEqual([
      { ...begun, usage: null },
      { ...ended('stop'), usage: null },
      '[DONE]',
      '',
    ]);
  });

  it('says that the reply was cut at the token limit, and that it is of flex tier', async () => {
    const { stream, read } = await open({ isFlex: true });
    const chunks = read();
    await stream.end(Promise.resolve(toReply({ ...completion, kind: 'truncated' })));
    const flex = { service_tier: 'flex' };
    expect(await chunks).toEqual([{ ...begun, ...flex }, { ...ended('length'), ...flex }, '[DONE]', '']);
  });

  it('ends with an error, without [DONE] or a finish reason, what fails after it has begun', async () => {
    const { stream, read, response } = await open();
    const chunks = read();
    stream.write('Hel');
    await stream.end(Promise.reject(new Failure('provider_timeout', { cause: new Error('secret') })));
    expect(await chunks).toEqual([
      begun,
      said('Hel'),
      {
        error: {
          message: 'The provider did not answer in time.',
          type: 'server_error',
          param: null,
          code: 'provider_timeout',
        },
      },
      '',
    ]);
    expect(response.locals.failureCode).toBe('provider_timeout');
  });

  it('ends with content_filter what is blocked after text was shown, and with an error what is before', async () => {
    const shown = await open();
    const chunks = shown.read();
    shown.stream.write('Hel');
    await shown.stream.end(Promise.reject(new Failure('content_blocked')));
    expect(await chunks).toEqual([begun, said('Hel'), ended('content_filter'), '[DONE]', '']);
    expect(shown.response.locals.failureCode).toBe('content_blocked');

    arrived = Promise.withResolvers();
    const empty = await open();
    const failed = empty.read();
    empty.stream.begin();
    await empty.stream.end(Promise.reject(new Failure('content_blocked')));
    expect(await failed).toEqual([begun, { error: expect.objectContaining({ code: 'content_filter' }) }, '']);
  });

  it('leaves to others what fails before it has begun, and what nobody expected', async () => {
    const { stream, response } = await open();
    const failure = new Failure('content_blocked');
    await expect(stream.end(Promise.reject(failure))).rejects.toBe(failure);
    expect(response.headersSent).toBe(false);
    stream.write('a');
    await expect(stream.end(Promise.reject(new TypeError('x')))).rejects.toThrow('x');
  });

  it('names the target of a fallback from the first chunk on, before a piece or without one', async () => {
    const early = await open();
    const chunks = early.read();
    early.stream.begin({ writer: { provider: 'anthropic', model: 'next' }, ignored: ['temperature'] });
    early.stream.write('Hi');
    await early.stream.end(Promise.resolve(reply));
    expect((await early.answer)[0].headers['x-llm-provider']).toBe('anthropic');
    expect(early.marked).toEqual([['anthropic', ['temperature']]]);
    const model = 'anthropic/next';
    expect(await chunks).toEqual([
      { ...begun, model },
      { ...said('Hi'), model },
      { ...ended('stop'), model },
      '[DONE]',
      '',
    ]);

    arrived = Promise.withResolvers();
    const late = await open();
    const attempts = [
      { provider: 'bedrock', code: 'provider_error' },
      { provider: 'vertexai', code: 'ok' },
    ] as const;
    const rest = late.read();
    const fallen = { ...completion, attempts: [...attempts], askedModel: 'next' };
    await late.stream.end(Promise.resolve(toReply(fallen)));
    expect((await late.answer)[0].headers['x-llm-provider']).toBe('vertexai');
    const last = 'vertexai/next';
    expect(await rest).toEqual([{ ...begun, model: last }, { ...ended('stop'), model: last }, '[DONE]', '']);
  });

  const call = (id: string, at: number, signature?: string) =>
    ({ kind: 'call', id, name: 'weather', at, ...(signature && { signature }) }) as const;
  const calls = (...toolCalls: object[]) => choice({ tool_calls: toolCalls });
  const headOf = (index: number, id: string, more: object = {}) =>
    calls({ index, id, type: 'function', function: { name: 'weather', arguments: '' }, ...more });
  const piece = (index: number, text: string) => calls({ index, function: { arguments: text } });

  it('names each call once, then sends the pieces of its arguments, and text behind it as content', async () => {
    const { stream, read } = await open({ provider: 'vertexai' });
    const chunks = read();
    stream.begin();
    stream.write('Look: ');
    stream.mark(call('a', 6, 'signed'));
    stream.write('{"x"');
    stream.write(':1}');
    stream.mark(call('b', 13));
    stream.write('{}');
    stream.mark({ kind: 'text', at: 15 });
    stream.write('done');
    const marks = [call('a', 6, 'signed'), call('b', 13), { kind: 'text', at: 15 } as const];
    const said = { ...uncounted, text: 'Look: {"x":1}{}done', marks };
    await stream.end(Promise.resolve(toReply(said)));
    const events = (await chunks) as { choices: unknown }[];
    expect(events.slice(1, -2).map((event) => event.choices)).toEqual([
      choice({ content: 'Look: ' }),
      headOf(0, 'a', { extra_content: { google: { thought_signature: 'signed' } } }),
      piece(0, '{"x"'),
      piece(0, ':1}'),
      headOf(1, 'b'),
      piece(1, '{}'),
      choice({ content: 'done' }),
      choice({}, 'tool_calls'),
    ]);
    expect(events.slice(0, -2).filter((event) => !isChunkOfOpenAi(event))).toEqual([]);
  });

  it('ends with length what was cut in the arguments', async () => {
    const { stream, read } = await open();
    const chunks = read();
    stream.begin();
    stream.mark(call('a', 0));
    stream.write('{"x');
    const cut: Completion = { ...uncounted, kind: 'truncated', text: '{"x', marks: [call('a', 0)] };
    await stream.end(Promise.resolve(toReply(cut)));
    expect((await chunks).slice(-3)).toEqual([ended('length'), '[DONE]', '']);
  });

  it.each(['content_blocked', 'provider_error'] as const)(
    'ends with an error, without [DONE], what breaks in the arguments: %s',
    async (code) => {
      const { stream, read } = await open();
      const chunks = read();
      stream.write('Hello');
      stream.mark(call('a', 5));
      stream.write('{"x');
      await stream.end(Promise.reject(new Failure(code)));
      expect((await chunks).at(-2)).toEqual({ error: expect.objectContaining({ type: expect.any(String) }) });
    },
  );
});
