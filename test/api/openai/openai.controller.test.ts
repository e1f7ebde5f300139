import { connect } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { ChatCommand, ChatReply } from '../../../api/chat/chat-command.js';
import { Failure } from '../../../shared/failures.js';
import { type ChatApp, startChatApp } from '../../support/chat-app.js';
import { userNamed } from '../../support/identities.js';
import { isCompletionOfOpenAi } from '../../support/openai-schemas.js';

let app: ChatApp;
let reply: ((command: ChatCommand) => Promise<ChatReply>) | undefined;
const models = [
  { provider: 'openai', model: 'gpt', since: 1_700_000_000_999 },
  { provider: 'vertexai', model: 'publishers/x/models/y', since: 1_700_000_001_000 },
] as const;
beforeAll(async () => {
  const variables = { CORS_ORIGINS: 'https://app.example' };
  app = await startChatApp({ reply: (command) => reply?.(command), models, variables });
});
afterAll(() => app.close());
afterEach(() => {
  reply = undefined;
});

const authorization = `Basic ${btoa('user:secret')}`;
const messages = [{ role: 'user', content: 'Hello' }];
const path = '/v1/chat/completions';

interface Call {
  fields?: object;
  body?: string;
  headers?: Record<string, string>;
}

const complete = ({ fields, body, headers }: Call = {}) =>
  fetch(app.url + path, {
    method: 'POST',
    headers: { Authorization: authorization, 'Content-Type': 'application/json', ...headers },
    body: body ?? JSON.stringify({ model: 'openai/m', messages, ...fields }),
  });
const get = (at: string, headers: Record<string, string> = { Authorization: authorization }) =>
  fetch(app.url + at, { headers });

/** The error of an answer, after what all of them have in common. */
async function errorOf(response: Response) {
  expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
  expect(response.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
  expect(response.headers.get('cache-control')).toBe('no-store');
  expect(response.headers.get('x-should-retry')).toMatch(/^(true|false)$/);
  const { error, ...more } = (await response.json()) as { error: Record<string, unknown> };
  expect(more).toEqual({});
  expect(Object.keys(error)).toEqual(['message', 'type', 'param', 'code']);
  return { status: response.status, ...error };
}

describe('a chat completion', () => {
  it('is a chat of the provider and the model that it names', async () => {
    const response = await complete({ fields: { temperature: 0.5, service_tier: 'flex' } });
    expect(response.status).toBe(200);
    expect(app.commands.at(-1)).toMatchObject({
      ...{ provider: 'openai', model: 'm', turns: messages, user: userNamed('user').id },
      ...{
        parameters: { temperature: 0.5 },
        isLowPriority: true,
        stream: undefined,
        storeOptions: undefined,
      },
    });
    const body = (await response.json()) as { id: string; created: number };
    expect(body).toEqual({
      id: `chatcmpl-${response.headers.get('x-request-id')}`,
      object: 'chat.completion',
      created: expect.any(Number),
      model: 'openai/m',
      service_tier: 'flex',
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: 'Hello', refusal: null },
          logprobs: null,
          finish_reason: 'stop',
        },
      ],
    });
    expect(Math.abs(body.created - Date.now() / 1000)).toBeLessThan(60);
  });

  it('tells the token counts, the model as it was asked for, and the headers of a chat', async () => {
    reply = async () => ({
      kind: 'completed',
      completion: {
        ...{ kind: 'truncated', text: 'Hel', model: 'm-2026', queueMs: 2, providerMs: 3 },
        usage: { inputTokens: 7, outputTokens: 5 },
      },
    });
    const response = await complete();
    expect(await response.json()).toMatchObject({
      model: 'openai/m',
      choices: [{ message: { content: 'Hel' }, finish_reason: 'length' }],
      usage: { prompt_tokens: 7, completion_tokens: 5, total_tokens: 12 },
    });
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'application/json; charset=utf-8',
      'x-llm-provider': 'openai',
      'x-llm-model': 'm-2026',
      'x-llm-finish-reason': 'length',
      'x-llm-input-tokens': '7',
      'x-llm-output-tokens': '5',
      'server-timing': 'queue;dur=2, provider;dur=3',
    });
  });

  it('may name the provider by X-LLM, and is named by both then', async () => {
    const response = await complete({ fields: { model: 'm' }, headers: { 'X-LLM': 'bedrock' } });
    expect(await response.json()).toMatchObject({ model: 'bedrock/m' });
    expect(app.commands.at(-1)).toMatchObject({ provider: 'bedrock', model: 'm' });
  });

  it.each([
    ['7', 7000],
    ['0.5', 500],
    ['600', 600_000],
    ['0', undefined],
    ['-1', undefined],
    ['soon', undefined],
    ['1e3', undefined],
  ])('takes X-Stainless-Timeout: %s for the time that the client waits', async (seconds, expected) => {
    expect((await complete({ headers: { 'X-Stainless-Timeout': seconds } })).status).toBe(200);
    expect(app.commands.at(-1)?.clientTimeoutMs).toBe(expected);
  });

  it('names in a header the fields that nobody knows', async () => {
    const response = await complete({
      body: `{"model":"openai/m","__proto__":{"n":2},"chat_id":"x","stream":true,"stream_options":{"x":1},"messages":
        [{"role":"user","content":[{"type":"text","text":"Hi","cache_control":{}}],"name":"a"}]}`,
    });
    expect(response.status).toBe(200);
    await response.text();
    expect(response.headers.get('x-ignored-fields')).toBe(
      '__proto__, chat_id, stream_options/x, messages/*/name, messages/*/content/*/cache_control',
    );
    expect((await complete()).headers.get('x-ignored-fields')).toBeNull();
  });

  it('refuses them under handling=strict', async () => {
    const response = await complete({ fields: { chat_id: 'x' }, headers: { Prefer: 'handling=strict' } });
    expect(response.headers.get('preference-applied')).toBe('handling=strict');
    expect(await errorOf(response)).toEqual({
      status: 400,
      message: 'The request has a field that this server does not know.',
      type: 'invalid_request_error',
      param: 'chat_id',
      code: 'invalid_request',
    });
  });

  it('names in the same header the hints that the provider which answers does not take', async () => {
    const hints = { temperature: 0.2, top_p: 0.9, seed: 7, frequency_penalty: 1 };
    const asked = async (fields: object, headers: Record<string, string> = {}) => {
      const response = await complete({ fields: { ...hints, ...fields }, headers });
      await response.text();
      return [response.status, response.headers.get('x-ignored-fields')];
    };
    const model = 'anthropic/m';
    const names = 'temperature, top_p, seed, frequency_penalty';
    for (const stream of [false, true]) {
      expect(await asked({ model, chat_id: 'x', stream })).toEqual([200, `chat_id, ${names}`]);
      expect(await asked({ model: 'bedrock/m', stream })).toEqual([200, 'seed, frequency_penalty']);
      expect(await asked({ stream })).toEqual([200, null]);
    }
    expect(app.commands.at(-1)?.parameters).toMatchObject({ temperature: 0.2, seed: 7 });
    const attempts = [
      { provider: 'anthropic', code: 'provider_error' },
      { provider: 'bedrock', code: 'ok' },
    ] as const;
    reply = async (command) => {
      command.stream?.sink.begin({ writer: { provider: 'bedrock', model: 'm' } });
      return { ...hello, completion: { ...hello.completion, attempts: [...attempts] } };
    };
    for (const stream of [false, true])
      expect(await asked({ model, stream })).toEqual([200, 'seed, frequency_penalty']);
    reply = async () => ({ kind: 'accepted', id: 'the-id', status: 'queued' });
    expect(await asked({ model }, { Prefer: 'respond-async' })).toEqual([202, names]);
  });

  it('refuses such hints under handling=strict, also those that a fallback would be asked without', async () => {
    const strictly = (fields: object, headers: Record<string, string> = {}) =>
      complete({
        fields: { temperature: 0.2, ...fields },
        headers: { Prefer: 'handling=strict', ...headers },
      });
    const refused = {
      ...{ status: 400, code: 'invalid_request', param: 'temperature' },
      message: 'temperature is not taken by anthropic.',
    };
    expect(await errorOf(await strictly({ model: 'anthropic/m' }))).toMatchObject(refused);
    const fallback = { 'X-LLM-Fallback': 'bedrock, anthropic/m' };
    expect(await errorOf(await strictly({}, fallback))).toMatchObject(refused);
    expect((await strictly({}, { 'X-LLM-Fallback': 'bedrock' })).status).toBe(200);
    // For the fallback of the operators, which is known later.
    expect(app.commands.at(-1)).toMatchObject({ isStrict: true });
  });

  it('with an Idempotency-Key has the id of the stored chat', async () => {
    reply = async ({ storeOptions, stream }) => {
      storeOptions?.onResolved('stored', { isReplayed: true });
      stream?.sink.begin();
      return hello;
    };
    for (const stream of [false, true]) {
      const response = await complete({ fields: { stream }, headers: { 'Idempotency-Key': 'k' } });
      expect(app.commands.at(-1)?.storeOptions).toMatchObject({ owner: userNamed('user'), key: 'k' });
      expect(response.headers.get('idempotency-replayed')).toBe('true');
      expect(response.headers.get('content-location')).toBe('/v1/chat/stored');
      expect(await response.text()).toContain('"id":"chatcmpl-stored"');
    }
    expect(await errorOf(await complete({ headers: { 'Idempotency-Key': 'a b' } }))).toMatchObject({
      ...{ status: 400, param: 'Idempotency-Key' },
    });
  });

  it('with respond-async is accepted, streamed or not', async () => {
    reply = async () => ({ kind: 'accepted', id: 'the-id', status: 'queued' });
    for (const stream of [false, true]) {
      const response = await complete({ fields: { stream }, headers: { Prefer: 'respond-async' } });
      expect(response.status).toBe(202);
      expect(response.headers.get('location')).toBe('/v1/chat/the-id');
      expect(await response.json()).toEqual({ id: 'the-id', status: 'queued' });
      expect(app.commands.at(-1)?.stream).toBeUndefined();
    }
  });

  it.each<[string, string, Partial<ChatCommand>, string]>([
    ['Prefer', 'wait=7', { waitMs: 7000 }, 'wait=0'],
    ['X-LLM-Fallback', 'bedrock', { fallback: [{ provider: 'bedrock' }] }, 'nobody'],
  ])('reads %s as a chat does', async (name, value, expected, wrong) => {
    const response = await complete({ headers: { [name]: value } });
    expect([response.status, app.commands.at(-1)]).toMatchObject([200, expected]);
    expect(await errorOf(await complete({ headers: { [name]: wrong } }))).toMatchObject({
      ...{ status: 400, param: name, code: 'invalid_request' },
    });
  });

  it('is counted as a chat of its provider', async () => {
    await complete({ fields: { model: 'vertexai/m' } });
    await complete({ fields: { model: 'nobody/m' } });
    const page = await (await fetch(`${app.url}/metrics`)).text();
    expect(page).toMatch(
      /quillgate_chat_requests_total\{code="ok",provider="vertexai"\} 1|quillgate_chat_requests_total\{provider="vertexai",code="ok"\} 1/,
    );
    expect(page).toMatch(
      /quillgate_chat_requests_total\{[^}]*"none"[^}]*"not_found"[^}]*\} 1|quillgate_chat_requests_total\{[^}]*"not_found"[^}]*"none"[^}]*\} 1/,
    );
    for (const [, value] of page.matchAll(/quillgate_chat_requests_in_flight\{[^}]*\} (\d+)/g))
      expect(value).toBe('0');
  });

  it('may be asked for by pages of the configured origins, with the headers of OpenAI’s client', async () => {
    const response = await fetch(app.url + path, {
      method: 'OPTIONS',
      headers: {
        Origin: 'https://app.example',
        'Access-Control-Request-Method': 'POST',
        'Access-Control-Request-Headers': 'authorization,content-type,x-stainless-timeout',
      },
    });
    expect(response.status).toBe(204);
    expect(response.headers.get('access-control-allow-headers')).toContain('X-Stainless-Timeout');
  });
});

describe('a chat completion with tools', () => {
  const tools = [{ type: 'function', function: { name: 'weather', strict: true } }];

  it('has the fields that are not known named: in tools, calls, results and images', async () => {
    const cache_control = { type: 'ephemeral' };
    const call = { id: 'a', type: 'function', function: { name: 'weather', arguments: '{}', x: 1 }, y: 1 };
    const image = { type: 'image_url', image_url: { url: 'https://example.com/a.png', detail: 'high' } };
    const response = await complete({
      fields: {
        tools: [
          { ...tools[0], cache_control },
          { type: 'function', function: { name: 'b', cache_control } },
        ],
        messages: [
          { role: 'user', content: [{ ...image, cache_control }] },
          {
            role: 'assistant',
            content: null,
            tool_calls: [{ ...call, extra_content: { google: {}, z: {} } }],
          },
          { role: 'tool', tool_call_id: 'a', content: 'Sun', name: 'weather' },
        ],
      },
    });
    await response.text();
    expect([response.status, response.headers.get('x-ignored-fields')?.split(', ').toSorted()]).toEqual([
      200,
      [
        'messages/*/content/*/cache_control',
        'messages/*/content/*/image_url/detail',
        'messages/*/name',
        'messages/*/tool_calls/*/extra_content/z',
        'messages/*/tool_calls/*/function/x',
        'messages/*/tool_calls/*/y',
        'tools/*/cache_control',
        'tools/*/function/cache_control',
      ],
    ]);
  });

  it('calls tools, and says in the headers why it ended, and which hints its model refused', async () => {
    const completion = {
      ...{ ...hello.completion, text: 'Look:{}', ignored: ['temperature', 'toolChoice'] },
      marks: [{ kind: 'call', id: 'a', name: 'weather', at: 5 }] as const,
    };
    reply = async ({ stream }) => {
      stream?.sink.begin({ ignored: completion.ignored });
      return { kind: 'completed', completion: { ...completion, marks: [...completion.marks] } };
    };
    for (const stream of [false, true]) {
      const response = await complete({ fields: { tools, stream, model: 'vertexai/m' } });
      expect(response.headers.get('x-ignored-fields')).toBe('tools.strict, temperature, tool_choice');
      const text = await response.text();
      expect(text).toContain('"finish_reason":"tool_calls"');
      if (!stream) {
        expect(response.headers.get('x-llm-finish-reason')).toBe('tool_calls');
        expect(isCompletionOfOpenAi(JSON.parse(text))).toBe(true);
      }
    }
    expect(app.commands.at(-1)?.parameters).toEqual({ tools: [{ name: 'weather', strict: true }] });
  });

  it('refuses under handling=strict what is ignored in a tool, unless only a fallback that is not asked does', async () => {
    const strictly = (model: string, more: object = {}, fallback = 'none') =>
      complete({
        fields: { tools, model, ...more },
        headers: { Prefer: 'handling=strict', 'X-LLM-Fallback': fallback },
      });
    expect(await errorOf(await strictly('vertexai/m'))).toMatchObject({
      ...{ status: 400, param: 'tools', message: 'tools has strict, which is not taken by vertexai.' },
    });
    expect((await strictly('openai/m')).status).toBe(200);
    expect((await strictly('openai/m', {}, 'vertexai')).status).toBe(400);
    const schema = { type: 'object', additionalProperties: { type: 'string' } };
    const map = { response_format: { type: 'json_schema', json_schema: { name: 'x', schema } } };
    expect((await strictly('openai/m', map, 'anthropic')).status).toBe(200);
  });

  it('names the field that the provider refused', async () => {
    reply = () => Promise.reject(new Failure('provider_rejected', { refusedParameter: 'toolChoice' }));
    expect(await errorOf(await complete())).toMatchObject({
      ...{ status: 400, param: 'tool_choice', code: 'provider_rejected' },
    });
  });
});

describe('the models', () => {
  const gpt = { id: 'openai/gpt', object: 'model', created: 1_700_000_000, owned_by: 'openai' };
  const other = {
    ...{ id: 'vertexai/publishers/x/models/y', object: 'model' },
    ...{ created: 1_700_000_001, owned_by: 'vertexai' },
  };

  it('are listed', async () => {
    const response = await get('/v1/models');
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual({ object: 'list', data: [gpt, other] });
  });

  it.each([
    ['/v1/models/openai%2Fgpt', gpt],
    ['/v1/models/openai/gpt', gpt],
    ['/v1/models/openai/gpt?x=/y', gpt],
    ['/v1/models/vertexai%2Fpublishers%2Fx%2Fmodels%2Fy', other],
    ['/v1/models/vertexai/publishers/x%2Fmodels/y', other],
  ])('are at %s', async (at, expected) => {
    const response = await get(at);
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual(expected);
  });

  it('are at a whole URL, too', async () => {
    const socket = connect(Number(new URL(app.url).port), '127.0.0.1');
    const headers = `Host: a\r\nAuthorization: ${authorization}\r\nConnection: close`;
    socket.write(`GET http://a/v1/models/openai/gpt HTTP/1.1\r\n${headers}\r\n\r\n`);
    expect(Buffer.concat(await socket.toArray()).toString()).toContain(JSON.stringify(gpt));
  });

  it.each(['/v1/models/gpt', '/v1/models/openai/none', '/v1/models/openai/gpt/', '/v1/models/__proto__'])(
    'are not at %s',
    async (at) => {
      expect(await errorOf(await get(at))).toMatchObject({
        status: 404,
        param: 'model',
        code: 'model_not_found',
      });
    },
  );
});

describe('what goes wrong', () => {
  const canary = 'canary-of-the-caller';
  const shownAt = { type: 'image_url', image_url: { url: `https://a/${'b'.repeat(2038)}` } };
  const calledAndAnswered = (id: string) => [
    {
      role: 'assistant',
      tool_calls: [{ id, type: 'function', function: { name: 'a', arguments: '{}' } }],
    },
    { role: 'tool', tool_call_id: id, content: 'x' },
  ];

  it.each<[string, Call, object]>([
    ['JSON that is none', { body: '{' }, { status: 400, code: 'invalid_json', param: null }],
    [
      'no object',
      { body: '5' },
      { status: 400, code: 'invalid_request', message: 'The body must be an object.' },
    ],
    ['depth', { body: `{"a":${'['.repeat(48)}` }, { status: 400, code: 'invalid_request' }],
    ['a lone surrogate', { body: '{"model":"\\ud800"}' }, { status: 400, code: 'invalid_request' }],
    ['a large body', { body: ' '.repeat(8_388_609) }, { status: 413, code: 'payload_too_large' }],
    [
      'a text that only images leave room for',
      { fields: { messages: [{ role: 'user', content: 'x'.repeat(1_048_577) }] } },
      { status: 413, code: 'payload_too_large' },
    ],
    [
      'addresses of images that only other images leave room for',
      { fields: { messages: [{ role: 'user', content: Array(600).fill(shownAt) }] } },
      { status: 413, code: 'payload_too_large' },
    ],
    [
      'an id that only images leave room for',
      { fields: { messages: calledAndAnswered('x'.repeat(600_000)) } },
      { status: 413, code: 'payload_too_large' },
    ],
    [
      'a field without effect that only images leave room for',
      { fields: { metadata: { a: 'x'.repeat(1_048_577) } } },
      { status: 413, code: 'payload_too_large' },
    ],
    [
      'another media type',
      { headers: { 'Content-Type': 'text/plain' } },
      { status: 415, code: 'unsupported_media_type' },
    ],
    ['no text', { fields: { messages: [] } }, { status: 400, code: 'empty_conversation' }],
    [
      'a value of another type',
      { fields: { messages: [{ role: canary, content: canary }] } },
      { status: 400, code: 'invalid_request', param: 'messages[0].role' },
    ],
    [
      'a thousand errors',
      { fields: { messages: Array(1000).fill({ role: canary, content: 5, [canary]: 1 }) } },
      { status: 400, code: 'invalid_request', param: 'messages[0].role' },
    ],
    [
      'an unknown model',
      { fields: { model: canary } },
      { status: 404, code: 'model_not_found', param: 'model' },
    ],
    ['an unknown provider', { headers: { 'X-LLM': canary } }, { status: 404, code: 'unknown_provider' }],
    ['no credentials', { headers: { Authorization: '' } }, { status: 401, code: 'unauthorized' }],
    ['a token that is none', { headers: { Authorization: 'Bearer x' } }, { status: 401 }],
    ['wrong credentials', { headers: { Authorization: `Basic ${btoa('a:b')}` } }, { status: 401 }],
  ])('is an error of OpenAI’s: %s', async (_, call, expected) => {
    const error = await errorOf(await complete(call));
    expect(error).toMatchObject({ type: 'invalid_request_error', ...expected });
    expect(JSON.stringify(error)).not.toContain(canary);
  });

  it('in a chat, streamed or not, has the status and the headers of its failure', async () => {
    reply = () => Promise.reject(new Failure('overloaded', { retryAfterMs: 2500 }));
    for (const stream of [false, true]) {
      const response = await complete({ fields: { stream } });
      expect(response.headers.get('x-should-retry')).toBe('true');
      expect(await errorOf(response)).toMatchObject({ status: 503 });
    }
  });

  it.each([
    ['GET', path, 'POST'],
    ['DELETE', path, 'POST'],
    ['POST', '/v1/models', 'GET, HEAD'],
    ['DELETE', '/v1/models/openai/gpt', 'GET, HEAD'],
  ])('is the method: %s %s', async (method, at, allow) => {
    const response = await fetch(app.url + at, { method });
    expect(response.headers.get('allow')).toBe(allow);
    expect(await errorOf(response)).toMatchObject({ status: 405, code: 'method_not_allowed' });
  });

  it.each([
    ...['/v1', '/v1/', '/v1/embeddings', '/v1/chat/', '/v1/chat/x/y', '/v1/models/', '/v1/blogs', '/v1/%ff'],
    ...[
      '/v1/chat/completions/',
      '/v1/chat/completions/x',
      '/v1/Models',
      '/v1/models/%ff',
      '/v1/openapi.json',
    ],
  ])('is the address: %s', async (at) => {
    expect(await errorOf(await get(at))).toMatchObject({ status: 404, code: 'not_found' });
  });

  it.each(['/v1/chat', '/v1/chat/x', '/v1/chat/%ff', '/v2', '/V1/models', '/v1x'])(
    'is a problem elsewhere: %s',
    async (at) => {
      const response = await get(at);
      expect(response.headers.get('content-type')).toMatch(/^application\/problem\+json/);
    },
  );

  const wrongBase = 'The base address of OpenAI’s API ends with /v1 here.';
  it.each([
    ...['/chat/completions', '/completions', '/responses', '/embeddings'].map((at) => [
      'POST',
      at,
      wrongBase,
    ]),
    ['GET', '/models', wrongBase],
    ...['/v1/responses', '/v1/completions', '/v1/embeddings'].map((at) => [
      ...['POST', at],
      'Of OpenAI’s API this server has chat completions and models: in the AI SDK, use openai.chat(…).',
    ]),
  ])('is the base address, or another API: %s %s', async (method = '', at, message) => {
    const sent =
      method === 'POST' ? { body: '{"model":"m"}', headers: { 'Content-Type': 'application/json' } } : {};
    expect(await errorOf(await fetch(app.url + at, { method, ...sent }))).toEqual({
      ...{ status: 404, type: 'invalid_request_error', code: 'not_found', param: null },
      message,
    });
  });

  it('is an error of OpenAI’s also before any operation is chosen', async () => {
    const socket = connect(Number(new URL(app.url).port), '127.0.0.1');
    socket.write('GET /v1/models HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n');
    const said = Buffer.concat(await socket.toArray()).toString();
    expect(said).toMatch(/^HTTP\/1.1 400 /);
    expect(said).toContain('{"error":{"message":');
  });
});

describe('other addresses below /v1', () => {
  let mounted: ChatApp;
  beforeAll(async () => {
    mounted = await startChatApp({
      variables: {
        CHAT_BASE_URL: 'http://x/v1/a',
        CHAT_BASE_URL_ALT: 'http://x/b',
        BLOG_BASE_URL: 'http://x/v1',
      },
    });
  });
  afterAll(() => mounted.close());

  it.each([
    ['POST', '/v1/blogs', 401],
    ['PATCH', '/v1/blogs', 405],
    ['GET', '/v1/a/chat', 405],
    ['GET', '/v1/a/chat/x', 401],
    ['GET', '/chat', 404],
  ])('of chat and blog have problems: %s %s', async (method, at, status) => {
    const response = await fetch(mounted.url + at, { method });
    expect([response.status, response.headers.get('content-type')]).toEqual([
      status,
      expect.stringMatching(/^application\/problem\+json/),
    ]);
  });

  it('do not move OpenAI’s, whatever the bases are', async () => {
    const options = { headers: { Authorization: authorization } };
    expect((await fetch(`${mounted.url}/v1/models`, options)).status).toBe(200);
    expect(await errorOf(await fetch(`${mounted.url}/v1/chat`, options))).toMatchObject({ status: 404 });
    expect(await errorOf(await fetch(`${mounted.url}/v1/chat/completions`))).toMatchObject({ status: 405 });
    expect((await fetch(`${mounted.url}/v1/a/models`, options)).status).toBe(404);
    for (const at of ['/chat/completions', '/b/chat/completions', '/b/responses']) {
      const response = await fetch(mounted.url + at, { method: 'POST' });
      expect(await errorOf(response)).toMatchObject({ message: expect.stringContaining('ends with /v1') });
    }
    // A stored chat, or a post, may be called so.
    for (const at of ['/b/chat/completions', '/v1/blogs/models'])
      expect((await fetch(mounted.url + at)).headers.get('content-type')).toMatch(/^application\/problem/);
  });
});

const hello: Extract<ChatReply, { kind: 'completed' }> = {
  kind: 'completed',
  completion: { kind: 'ok', text: 'Hello', model: 'm', queueMs: 0, providerMs: 0 },
};
