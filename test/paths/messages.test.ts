import { randomBytes } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { text as readText } from 'node:stream/consumers';
import Anthropic from '@anthropic-ai/sdk';
import { afterAll, describe, expect, it } from 'vitest';
import { chatToken, startDeployment } from '../support/deployment.js';
import { toServerSentEvent } from '../support/playing-provider.js';
import { profiles } from '../support/profiles.js';
import { serve } from '../support/serve.js';

/** A request as it arrived at Anthropic's address. */
interface Arrived {
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

type Event = Record<string, unknown> & { type: string };

const arrived: Arrived[] = [];
/** The last event waits for `gate`. */
let reply: { status?: number; events?: Event[]; body?: object; gate?: Promise<void> } = {};
const anthropic = await serve(async (request, response) => {
  arrived.push({ headers: request.headers, text: await readText(request) });
  const { status = 200, events = [], body, gate } = reply;
  response.writeHead(status, {
    'Content-Type': body ? 'application/json' : 'text/event-stream',
    'request-id': 'req_1',
  });
  const texts = body ? [JSON.stringify(body)] : events.map((each) => toServerSentEvent([each.type, each]));
  response.write(texts.slice(0, -1).join(''));
  await gate;
  response.end(texts.at(-1));
});
afterAll(() => anthropic.close());
const variables = {
  ...profiles.plain,
  ...{ ANTHROPIC_API_KEY: 'canary-of-the-key-of-anthropic', ANTHROPIC_BASE_URL: anthropic.url },
  MODEL_ALIASES: 'other-*=anthropic/claude-of-an-alias',
};
const deployment = await startDeployment({ variables });
afterAll(deployment.stop);

const send = (body: object | string, headers: Record<string, string> = {}, path = '/v1/messages') =>
  fetch(`${deployment.url}${path}`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${chatToken}`, 'Content-Type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });

const usage = {
  input_tokens: 12,
  output_tokens: 1,
  cache_read_input_tokens: 4000,
  cache_creation_input_tokens: 70,
};
/** The events of a reply of these blocks. */
const eventsOf = (blocks: Event[][], stop_reason = 'end_turn'): Event[] => [
  {
    type: 'message_start',
    message: { id: 'msg_1', type: 'message', role: 'assistant', model: 'claude-x', content: [], usage },
  },
  ...blocks.flatMap(([content_block, ...deltas], index) => [
    { type: 'content_block_start', index, content_block },
    ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
    { type: 'content_block_stop', index },
  ]),
  { type: 'message_delta', delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: 9 } },
  { type: 'message_stop' },
];
const said = (text: string): Event[] => [
  { type: 'text', text: '' },
  { type: 'text_delta', text },
];
const called = (id: string, input: string): Event[] => [
  { type: 'tool_use', id, name: 'look', input: {} },
  { type: 'input_json_delta', partial_json: input },
];
const thought = (thinking: string, signature: string): Event[] => [
  { type: 'thinking', thinking: '', signature: '' },
  { type: 'thinking_delta', thinking },
  { type: 'signature_delta', signature },
];

const asked = { model: 'claude-opus-5-5', max_tokens: 1000, messages: [{ role: 'user', content: 'Hello' }] };
const client = new Anthropic({ baseURL: deployment.url, authToken: chatToken, apiKey: null, maxRetries: 0 });
const cached = { cache_control: { type: 'ephemeral', ttl: '1h' } };

describe('a body', () => {
  it('with what this server does not know → arrives value by value, with its betas and its version', async () => {
    reply = { events: eventsOf([said('Hi')]) };
    const picture = randomBytes(300_000).toString('base64');
    const source = (data: string) => ({ type: 'base64', media_type: 'image/jpeg', data });
    const body = {
      ...asked,
      system: [
        { type: 'text', text: 'x-anthropic-billing-header: 1' },
        { type: 'text', text: 'Be brief.', ...cached },
      ],
      thinking: { type: 'enabled', budget_tokens: 999, display: 'omitted', block_binding: 'strict' },
      metadata: { user_id: 'someone' },
      context_management: { edits: [{ type: 'clear_tool_uses_20250919', keep: null }] },
      unknown: { nested: [1, 0.5, 1e21, true, null, '', 'ä\u2028\u0000"\\'] },
      tools: [
        {
          name: 'look',
          input_schema: { type: 'object', properties: { url: { type: 'string' } } },
          defer_loading: true,
        },
        { type: 'web_search_20250305', name: 'web_search', ...cached },
      ],
      messages: [
        {
          role: 'user',
          content: [
            { type: 'image', source: source(picture) },
            { type: 'text', text: '…', ...cached },
          ],
        },
        {
          role: 'assistant',
          content: [{ type: 'thinking', thinking: '', signature: 'Zm9v/+=' }, ...said('a').slice(0, 1)],
        },
        {
          role: 'user',
          content: [
            {
              type: 'tool_result',
              tool_use_id: 'any/id',
              content: [{ type: 'image', source: source(picture) }],
            },
          ],
        },
        { role: 'system', content: 'Later.' },
        {
          role: 'user',
          content: [{ type: 'document', source: { ...source('AAA'), media_type: 'application/pdf' } }],
        },
      ],
    };
    const response = await send(body, {
      'anthropic-beta': 'one-2026-01-01, oauth-2025-04-20,two',
      'anthropic-version': '2024-01-01',
    });
    expect(response.status).toBe(200);
    const { headers, text } = arrived.at(-1) as Arrived;
    expect(JSON.parse(text)).toEqual({ ...body, stream: true });
    expect(headers).toMatchObject({
      'anthropic-beta': 'one-2026-01-01,two',
      'anthropic-version': '2024-01-01',
    });
    expect(JSON.stringify(headers)).not.toContain(chatToken);
  });

  it('with long numbers → keeps their digits', async () => {
    reply = { events: eventsOf([said('Hi')]) };
    const text = JSON.stringify(asked).replace('{', '{"n":[12345678901234567890,1e400,1.0,-0.10e-7],');
    expect((await send(text)).status).toBe(200);
    expect(arrived.at(-1)?.text).toContain('"n":[12345678901234567890,1e400,1.0,-0.10e-7]');
  });

  it('of several MiB, and one whose pictures make it so → arrive whole', async () => {
    reply = { events: eventsOf([said('Hi')]) };
    const long = { ...asked, system: 'long '.repeat(1_000_000) };
    expect((await send(long)).status).toBe(200);
    expect(JSON.parse(arrived.at(-1)?.text ?? '')).toEqual({ ...long, stream: true });
    const data = randomBytes(6_000_000).toString('base64');
    const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data } };
    const large = { ...asked, messages: [{ role: 'user', content: [image, image, image] }] };
    expect((await send(large)).status).toBe(200);
    expect(JSON.parse(arrived.at(-1)?.text ?? '')).toEqual({ ...large, stream: true });
  });

  it.each<[string, object | string, number, string]>([
    ['no model', { ...asked, model: undefined }, 400, 'invalid_request_error'],
    ['a model that nobody has', { ...asked, model: 'unknown' }, 404, 'not_found_error'],
    ['no messages', { ...asked, messages: [] }, 400, 'invalid_request_error'],
    ['no limit', { ...asked, max_tokens: 0 }, 400, 'invalid_request_error'],
    ['no JSON', '{', 400, 'invalid_request_error'],
    ['a container', { ...asked, container: 'c' }, 400, 'invalid_request_error'],
    ['other models', { ...asked, fallbacks: [{ model: 'x' }] }, 400, 'invalid_request_error'],
    [
      'a file of the account',
      {
        ...asked,
        messages: [{ role: 'user', content: [{ type: 'document', source: { type: 'file', file_id: 'f' } }] }],
      },
      400,
      'invalid_request_error',
    ],
    [
      'a tool with another model',
      { ...asked, tools: [{ type: 'advisor', model: 'x' }] },
      400,
      'invalid_request_error',
    ],
    ['65 levels', `{"a":${'['.repeat(65)}${']'.repeat(65)}}`, 400, 'invalid_request_error'],
    ['too many values', { ...asked, a: Array(60_000).fill(1) }, 400, 'invalid_request_error'],
    ['9 MB of text', { ...asked, system: 'a'.repeat(9_000_000) }, 413, 'request_too_large'],
    ['33 MiB', { ...asked, system: 'a'.repeat(34_603_008) }, 413, 'request_too_large'],
  ])('with %s → is refused in the words of its API', async (_, body, status, type) => {
    const before = arrived.length;
    const response = await send(body);
    expect(await response.json()).toMatchObject({
      type: 'error',
      error: { type },
      request_id: expect.any(String),
    });
    expect([response.status, response.headers.get('x-should-retry'), arrived.length]).toEqual([
      status,
      'false',
      before,
    ]);
  });
});

describe('a reply', () => {
  it('is a message, streamed and whole, with the name that was asked for', async () => {
    reply = {
      events: eventsOf([thought('Hm', 'sig'), said('Hi'), called('toolu_1', '{"url":"x"}')], 'tool_use'),
    };
    const content = [
      { type: 'thinking', thinking: 'Hm', signature: 'sig' },
      { type: 'text', text: 'Hi' },
      { type: 'tool_use', id: 'toolu_1', name: 'look', input: { url: 'x' } },
    ];
    const whole = (await client.messages.create({
      ...asked,
      model: 'other-name',
    } as never)) as Anthropic.Message;
    expect(whole).toMatchObject({
      id: expect.stringMatching(/^msg_/),
      model: 'other-name',
      content,
      stop_reason: 'tool_use',
    });
    expect(whole.usage).toMatchObject({ ...usage, output_tokens: 9 });
    const streamed = await client.messages.stream(asked as never).finalMessage();
    expect(streamed).toMatchObject({ model: asked.model, content, stop_reason: 'tool_use' });
    expect(streamed.usage).toMatchObject({ ...usage, output_tokens: 9 });
  });

  it('of a tool runner for ten turns → each request has what the one before was answered with', async () => {
    const turns = 10;
    let turn = 0;
    reply = {};
    const next = () => {
      turn += 1;
      const input = `{"url":"${turn}","id":${turn}2345678901234567}`;
      reply = {
        events:
          turn < turns
            ? eventsOf(
                [thought(`t${turn}`, `sig${turn}`), said(`s${turn}`), called(`toolu_${turn}`, input)],
                'tool_use',
              )
            : eventsOf([said('done')]),
      };
    };
    next();
    const first = arrived.length;
    const runner = client.beta.messages.toolRunner({
      ...asked,
      stream: true,
      tools: [
        {
          type: 'custom',
          name: 'look',
          input_schema: { type: 'object' },
          parse: (input: unknown) => input,
          run: async () => {
            next();
            return [{ type: 'text', text: `result ${turn}` }];
          },
        },
      ],
    } as never);
    for await (const message of runner as AsyncIterable<{ finalMessage(): Promise<unknown> }>)
      await message.finalMessage();
    const requests = arrived.slice(first).map(({ text }) => JSON.parse(text));
    expect(requests).toHaveLength(turns);
    const [{ messages: begun }] = requests;
    for (const [n, { messages }] of requests.entries()) {
      expect(messages.slice(0, begun.length)).toEqual(begun);
      expect(messages).toHaveLength(1 + 2 * n);
    }
    const last = requests.at(-1).messages.filter(({ role }: { role: string }) => role === 'assistant');
    expect(last.map(({ content }: { content: { signature?: string }[] }) => content[0]?.signature)).toEqual(
      Array.from({ length: turns - 1 }, (_, n) => `sig${n + 1}`),
    );
  });

  it('that ends with a refusal behind text → is passed on', async () => {
    reply = { events: eventsOf([said('I')], 'refusal') };
    expect(await client.messages.create(asked as never)).toMatchObject({ stop_reason: 'refusal' });
  });

  it('that fails before and after its first part → an error, and an event', async () => {
    const error = { type: 'error', error: { type: 'overloaded_error', message: 'canary of a provider' } };
    reply = {
      status: 400,
      body: { ...error, error: { type: 'invalid_request_error', message: 'canary of a provider' } },
    };
    const refused = await send({ ...asked, stream: true });
    expect(refused.status).toBe(400);
    const text = await refused.text();
    expect(text).not.toContain('canary of a provider');
    reply = { events: [...eventsOf([said('Hello')]).slice(0, 3), error] };
    const gate = Promise.withResolvers<void>();
    reply.gate = gate.promise;
    const { body = null } = await send({ ...asked, stream: true });
    let broken = '';
    for await (const chunk of (body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream())) {
      broken += chunk;
      if (broken.includes('Hello')) gate.resolve();
    }
    expect(broken).toMatch(/event: error\ndata: \{"type":"error"/);
    expect(broken).not.toContain('message_stop');
  });
});
