import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import express, { type Response as HttpResponse } from 'express';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ChatReply } from '../../../../api/chat/chat-command.js';
import type { Completion } from '../../../../api/chat/chat-result.js';
import { toChatCompletion } from '../../../../api/chat-apis/openai-chat/completion.js';
import { CompletionStream } from '../../../../api/chat-apis/openai-chat/completion-stream.js';
import { sendStream } from '../../../../api/chat-apis/serve.js';
import type { ProviderId } from '../../../../shared/contracts/contract.js';
import { Failure, failureKinds } from '../../../../shared/failures.js';
import type { Mark } from '../../../../shared/protocol/parts.js';
import { isChunkOfOpenAi } from '../../../support/openai-schemas.js';
import { type Served, serve } from '../../../support/serve.js';

let served: Served;
let arrived: PromiseWithResolvers<HttpResponse>;
beforeEach(async () => {
  arrived = Promise.withResolvers();
  served = await serve(express().use((_request, response) => arrived.resolve(response)));
});
afterEach(() => served.close());

interface Asked {
  includesUsage?: boolean;
  isFlex?: boolean;
  provider?: ProviderId;
}

async function open({ includesUsage = false, isFlex = false, provider = 'bedrock' }: Asked = {}) {
  const client = get(served.url, { agent: false }).on('error', () => {});
  const answer = once(client, 'response') as Promise<[IncomingMessage]>;
  answer.catch(() => {});
  const response = await arrived.promise;
  const head = { id: 'the-id', created: 17, provider, model: `${provider}/asked`, isFlex };
  const marked: unknown[] = [];
  const stream = new CompletionStream({
    ...{ response, head: () => head, includesUsage },
    markIgnored: (...args) => void marked.push(args),
  });
  return { response, stream, answer, marked };
}

type Write = (stream: CompletionStream) => void;

/** A stream to its end: what its client reads, event by event. */
async function play(asked: Asked, write: Write, ending: Completion | Error) {
  const { stream, answer, response, marked } = await open(asked);
  const reading = answer.then(([message]) => message.setEncoding('utf8').toArray());
  write(stream);
  const end = async (): Promise<ChatReply> => {
    if (ending instanceof Error) throw ending;
    return { kind: 'completed', completion: ending };
  };
  await sendStream(response, stream, end());
  const events = (await reading).join('').split('\n\n');
  const chunks = events.map((event) => {
    const data = event.replace(/^data: /, '');
    return data.startsWith('{') ? (JSON.parse(data) as { choices?: unknown }) : data;
  });
  const [{ statusCode, headers }] = await answer;
  return { chunks, statusCode, headers, marked, failureCode: response.locals.failureCode };
}

const uncounted: Completion = { kind: 'ok', text: 'Hello', model: 'answered', queueMs: 1, providerMs: 1 };
const completion: Completion = { ...uncounted, usage: { inputTokens: 1, outputTokens: 2 } };
const head = { id: 'chatcmpl-the-id', object: 'chat.completion.chunk', created: 17, model: 'bedrock/asked' };
const choice = (delta: object, finish_reason: string | null = null) => [
  { index: 0, delta, logprobs: null, finish_reason },
];
const begun = { ...head, choices: choice({ role: 'assistant', content: '', refusal: null }) };
const said = (content: string) => ({ ...head, choices: choice({ content }) });
const ended = (reason: string) => ({ ...head, choices: choice({}, reason) });
const done = ['[DONE]', ''];
const failed = (error: object) => [{ error: expect.objectContaining(error) }, ''];
const silent: Write = () => undefined;
const saying =
  (...pieces: string[]): Write =>
  (stream) => {
    for (const piece of pieces) stream.write(piece);
  };

describe('a streamed completion', () => {
  const usage = null;
  const counts = { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 };
  const flex = { service_tier: 'flex' };
  const timeout = new Failure('provider_timeout', { cause: new Error('secret') });
  const { detail: message } = failureKinds.provider_timeout;

  interface Row {
    given: string;
    asked?: Asked;
    write?: Write;
    ending: Completion | Error;
    reads: unknown[];
  }
  it.each<Row>([
    {
      given: 'has two pieces → the role, each piece, the finish reason once',
      ...{ write: saying('Hel"\n', 'lo'), ending: completion },
      reads: [begun, said('Hel"\n'), said('lo'), ended('stop'), ...done],
    },
    {
      given: 'is asked for with its token counts → a chunk of their own, and null before',
      ...{ asked: { includesUsage: true }, write: saying('Hi'), ending: completion },
      reads: [
        ...[begun, said('Hi'), ended('stop')].map((chunk) => ({ ...chunk, usage })),
        ...[{ ...head, choices: [], usage: counts }, ...done],
      ],
    },
    {
      given: 'is of a provider that does not count → no chunk without a choice',
      ...{ asked: { includesUsage: true }, ending: uncounted },
      reads: [{ ...begun, usage }, { ...ended('stop'), usage }, ...done],
    },
    {
      given: 'was cut at the token limit, in the flex tier → it says so',
      ...{ asked: { isFlex: true }, ending: { ...completion, kind: 'truncated' } },
      reads: [{ ...begun, ...flex }, { ...ended('length'), ...flex }, ...done],
    },
    {
      given: 'fails after it has begun → an error of our own words',
      ...{ write: saying('Hel'), ending: timeout },
      reads: [
        ...[begun, said('Hel')],
        { error: { message, type: 'server_error', param: null, code: 'provider_timeout' } },
        '',
      ],
    },
    {
      given: 'is blocked after text was shown → content_filter',
      ...{ write: saying('Hel'), ending: new Failure('content_blocked') },
      reads: [begun, said('Hel'), ended('content_filter'), ...done],
    },
    {
      given: 'is blocked before any text → an error',
      ...{ write: (stream) => stream.begin(), ending: new Failure('content_blocked') },
      reads: [begun, ...failed({ code: 'content_filter' })],
    },
  ])('$given', async ({ asked = {}, write = silent, ending, reads }) => {
    const { chunks, failureCode } = await play(asked, write, ending);
    expect(chunks).toEqual(reads);
    expect(failureCode).toBe(ending instanceof Failure ? ending.code : undefined);
  });

  it('begins → it has the headers of a stream', async () => {
    const { statusCode, headers } = await play({}, saying('Hi'), completion);
    expect({ statusCode, ...headers }).toMatchObject({
      ...{ statusCode: 200, 'content-type': 'text/event-stream; charset=utf-8' },
      ...{ 'x-llm-provider': 'bedrock', 'x-accel-buffering': 'no' },
    });
    expect(headers).not.toHaveProperty('content-length');
  });

  it('fails before it has begun, or as nobody expected → left to others', async () => {
    const { stream, response } = await open();
    const failure = new Failure('content_blocked');
    await expect(sendStream(response, stream, Promise.reject(failure))).rejects.toBe(failure);
    expect(response.headersSent).toBe(false);
    stream.write('a');
    await expect(sendStream(response, stream, Promise.reject(new TypeError('x')))).rejects.toThrow('x');
  });

  it('is of a fallback → it is named from the first chunk on, before a piece or without one', async () => {
    const ignored = ['temperature'];
    const write: Write = (stream) => {
      stream.begin({ writer: { provider: 'anthropic', model: 'next' }, ignored });
      stream.write('Hi');
    };
    const early = await play({}, write, completion);
    expect([early.headers['x-llm-provider'], early.marked]).toEqual(['anthropic', [['anthropic', ignored]]]);
    const written = [begun, said('Hi'), ended('stop')];
    expect(early.chunks).toEqual([...written.map((each) => ({ ...each, model: 'anthropic/next' })), ...done]);

    arrived = Promise.withResolvers();
    const attempts = [
      { provider: 'bedrock', code: 'provider_error' } as const,
      { provider: 'vertexai', code: 'ok' } as const,
    ];
    const late = await play({}, silent, { ...completion, attempts, askedModel: 'next' });
    expect(late.headers['x-llm-provider']).toBe('vertexai');
    const unwritten = [begun, ended('stop')].map((each) => ({ ...each, model: 'vertexai/next' }));
    expect(late.chunks).toEqual([...unwritten, ...done]);
  });
});

describe('a streamed completion with calls', () => {
  const writer = { provider: 'anthropic', model: 'anthropic/m' } as const;
  const headOfWhole = { id: 'x', created: 1, isFlex: false, ...writer };
  const call = (id: string, at: number) => ({ kind: 'call', id, name: 'weather', at }) as const;
  const calls = (...toolCalls: object[]) => choice({ tool_calls: toolCalls });
  const headOf = (index: number, id: string, more: object = {}) =>
    calls({ index, id, type: 'function', function: { name: 'weather', arguments: '' }, ...more });
  const piece = (index: number, text: string) => calls({ index, function: { arguments: text } });

  it('has two → each is named once, then the pieces of its arguments, and text behind it is content', async () => {
    const marks = [call('a', 6), call('b', 13), { kind: 'text', at: 15 } as const] as const;
    const [first, second, behind] = marks;
    const write: Write = (stream) => {
      stream.begin();
      for (const each of ['Look: ', first, '{"x"', ':1}', second, '{}', behind, 'done'])
        typeof each === 'string' ? stream.write(each) : stream.mark(each);
    };
    const whole = { ...uncounted, text: 'Look: {"x":1}{}done', marks: [...marks] };
    const events = (await play({ provider: 'vertexai' }, write, whole)).chunks.slice(0, -2);
    expect(events.slice(1).map((event) => typeof event === 'object' && event.choices)).toEqual([
      choice({ content: 'Look: ' }),
      headOf(0, 'a'),
      piece(0, '{"x"'),
      piece(0, ':1}'),
      headOf(1, 'b'),
      piece(1, '{}'),
      choice({ content: 'done' }),
      choice({}, 'tool_calls'),
    ]);
    expect(events.filter((event) => !isChunkOfOpenAi(event))).toEqual([]);
  });

  it.each([1, 3, 1000])('has blocks and thinking, cut into pieces of %i → the whole reply', async (size) => {
    const opaque = { kind: 'opaque', length: 7, provider: 'anthropic', model: 'm', role: 'block' } as const;
    const text = 'Hm{"n":1}Look🎉{"n":2}{}Well{"n":3}so{}bye';
    const marks: Mark[] = [
      { kind: 'thinking', at: 0 },
      { ...opaque, at: 2 },
      { kind: 'text', at: 9 },
      { ...opaque, at: 15 },
      call('a', 22),
      { kind: 'text', at: 24 },
      { ...opaque, at: 28 },
      { kind: 'text', at: 35 },
      call('b', 37),
      { kind: 'text', at: 39 },
    ];
    const write: Write = (stream) => {
      for (const [place, mark] of marks.entries()) {
        stream.mark(mark);
        const end = marks[place + 1]?.at ?? text.length;
        for (let at = mark.at; at < end; at += size)
          expect(stream.write(text.slice(at, Math.min(at + size, end)))).toBe(true);
      }
    };
    const whole = { ...uncounted, text, marks };
    const { message } = toChatCompletion(headOfWhole, whole).choices[0] ?? {};
    const events = (await play({ provider: 'anthropic' }, write, whole)).chunks.slice(0, -2);
    const deltas = events.map((event) => Object(event).choices[0].delta);
    expect(deltas.map(({ content = '' }) => content).join('')).toBe(message?.content);
    const heads = deltas.flatMap(({ tool_calls = [] }) => tool_calls).filter(({ id }) => id !== undefined);
    expect(heads.map(({ extra_content }) => extra_content)).toEqual(
      message?.tool_calls?.map(({ extra_content }) => extra_content),
    );
    expect(heads.map(({ extra_content }) => extra_content.anthropic.signed_thinking)).toEqual([
      '[{"n":1},{"type":"text","length":6},{"n":2}]',
      '[{"type":"text","length":4},{"n":3},{"type":"text","length":2}]',
    ]);
  });

  it.each<[string, Completion | Error, unknown[]]>([
    [
      'is cut at the token limit → length',
      { ...uncounted, kind: 'truncated', text: 'Hi{"x', marks: [call('a', 2)] },
      [ended('length'), ...done],
    ],
    ['is blocked → an error', new Failure('content_blocked'), failed({ type: 'invalid_request_error' })],
    ['fails → an error', new Failure('provider_error'), failed({ type: 'server_error' })],
  ])('in the arguments it %s', async (_, ending, expected) => {
    const write: Write = (stream) => {
      stream.write('Hi');
      stream.mark(call('a', 2));
      stream.write('{"x');
    };
    expect((await play({}, write, ending)).chunks.slice(-expected.length)).toEqual(expected);
  });
});
