import { connect } from 'node:net';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import type { ChatCommand, ChatReply } from '../../../../api/chat/chat-command.js';
import type { ProviderId } from '../../../../shared/contracts/contract.js';
import { Failure } from '../../../../shared/failures.js';
import { basic, greeting, startApp } from '../../../support/app.js';
import type { Answer, Sent } from '../../../support/client.js';
import { userNamed } from '../../../support/identities.js';
import { readMetrics } from '../../../support/metrics.js';
import { isCompletionOfOpenAi } from '../../../support/openai-schemas.js';

let reply: ((command: ChatCommand) => Promise<ChatReply>) | undefined;
const models = [
  { provider: 'openai', model: 'gpt', since: 1_700_000_000_999 },
  { provider: 'vertexai', model: 'publishers/x/models/y', since: 1_700_000_001_000 },
] as const;
const variables = {
  CORS_ORIGINS: 'https://app.example',
  MODEL_ALIASES: 'gpt-6-luna=anthropic/claude-x, o4-*=vertexai/m',
};
const app = await startApp({ reply: (command) => reply?.(command), models, variables });
afterAll(app.close);
afterEach(() => {
  reply = undefined;
});

const Authorization = basic('user');
const user = { role: 'user', content: 'Hello' };
const path = '/v1/chat/completions';
const wrongBase = 'The base address of OpenAI’s API ends with one /v1 here.';
const accepted: ChatReply = { kind: 'accepted', id: 'the-id', status: 'queued' };

interface Call extends Sent {
  fields?: object;
}

const complete = <Body>({ fields, headers, ...sent }: Call = {}) => {
  const body = { model: 'openai/m', messages: [user], ...fields };
  return app.ask<Body>({ path, body, ...sent, headers: { Authorization, ...headers } });
};
const get = (at: string) => app.ask({ path: at, headers: { Authorization } });

/** A reply of this provider, which was asked after another one; `model` is that of both. */
function passedOnTo(writer: ProviderId, first: ProviderId, model?: string): ChatReply {
  const failed = { provider: first, code: 'provider_error', ...(model && { model }) } as const;
  const attempts = [failed, { ...failed, provider: writer, code: 'ok' } as const];
  return { ...greeting, completion: { ...greeting.completion, attempts } };
}

/** The error of an answer, after what all of them have in common. */
function errorOf(response: Answer<unknown>) {
  expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
  expect(response.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
  expect(response.headers.get('cache-control')).toBe('no-store');
  expect(response.headers.get('x-should-retry')).toMatch(/^(true|false)$/);
  const { error, ...more } = response.body as { error: Record<string, unknown> };
  expect(more).toEqual({});
  expect(Object.keys(error)).toEqual(['message', 'type', 'param', 'code']);
  return { status: response.status, ...error };
}

/** The answer to a client that is not `fetch`. */
async function saidTo(head: string): Promise<string> {
  const socket = connect(app.port, '127.0.0.1');
  socket.write(`${head}\r\nConnection: close\r\n\r\n`);
  return Buffer.concat(await socket.toArray()).toString();
}

describe('a chat completion', () => {
  it('is asked for → it is a chat of the provider and the model that it names', async () => {
    const fields = { model: 'vertexai/m', temperature: 0.5, service_tier: 'flex' };
    const before = Date.now();
    const response = await complete<{ created: number }>({ fields });
    expect(response.status).toBe(200);
    const parameters = JSON.stringify({ temperature: 0.5 });
    expect(app.commands.at(-1)).toMatchObject({
      ...{ provider: 'vertexai', model: 'm', user: userNamed('user').id },
      written: { hasParts: false, texts: { turns: JSON.stringify([user]), parameters } },
      ...{ parameters: { temperature: 0.5 }, isLowPriority: true },
      ...{ stream: undefined, storeOptions: undefined },
    });
    const { body } = response;
    const message = { role: 'assistant', content: 'Hello', refusal: null };
    expect(body).toEqual({
      id: `chatcmpl-${response.headers.get('x-request-id')}`,
      ...{ object: 'chat.completion', created: expect.any(Number), model: 'vertexai/m' },
      service_tier: 'flex',
      choices: [{ index: 0, message, logprobs: null, finish_reason: 'stop' }],
    });
    const seconds = [before, body.created * 1000, Date.now()].map((ms) => Math.floor(ms / 1000));
    expect(seconds).toEqual(seconds.toSorted((a, b) => a - b));
    const counted = readMetrics((await app.operate({ path: '/metrics' })).text);
    expect(counted.get('quillgate_chat_requests_total{provider="vertexai",code="ok"}')).toBe(1);
  });

  it('is answered → it has the model as it was asked for, and the headers of a chat', async () => {
    const usage = { inputTokens: 7, outputTokens: 5 };
    reply = async () => ({
      kind: 'completed',
      completion: { kind: 'truncated', text: 'Hel', model: 'm-2026', queueMs: 2, providerMs: 3, usage },
    });
    const response = await complete();
    expect(response.body).toMatchObject({ model: 'openai/m', usage: { total_tokens: 12 } });
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'x-llm-provider': 'openai',
      'x-llm-model': 'm-2026',
      'x-llm-finish-reason': 'length',
      'x-llm-input-tokens': '7',
      'x-llm-output-tokens': '5',
      'server-timing': 'queue;dur=2, provider;dur=3',
    });
  });

  it.each<[string, string, object]>([
    ['Prefer', 'wait=7', { waitMs: 7000 }],
    ['X-LLM-Fallback', 'bedrock', { fallback: [{ provider: 'bedrock' }] }],
    ['Idempotency-Key', 'k', { storeOptions: { owner: userNamed('user'), key: 'k' } }],
    ['X-LLM', 'bedrock', { provider: 'bedrock', model: 'm' }],
  ])('comes with %s: %s → it is done so: %j', async (name, value, expected) => {
    const fields = { model: name === 'X-LLM' ? 'm' : 'openai/m' };
    const response = await complete({ fields, headers: { [name]: value } });
    expect([response.status, app.commands.at(-1)]).toMatchObject([200, expected]);
  });

  it('names a model as the operators call it → that is asked, and named in the answer', async () => {
    const { body } = await complete({ fields: { model: 'o4-mini-high' } });
    expect(app.commands.at(-1)).toMatchObject({ provider: 'vertexai', model: 'm' });
    expect(body).toMatchObject({ model: 'o4-mini-high' });
    const streamed = await complete({ fields: { model: 'o4-mini-high', stream: true } });
    expect(streamed.text).toContain('"model":"o4-mini-high"');
    reply = async () => passedOnTo('bedrock', 'vertexai', 'm');
    const passedOn = await complete({ fields: { model: 'o4-mini-high' } });
    expect(passedOn.body).toMatchObject({ model: 'bedrock/m' });
  });

  const waits = 'X-Stainless-Timeout';
  it.each<[name: string, seconds: string, expected: number | undefined]>([
    [waits, '7', 7000],
    ['X-Stainless-Read-Timeout', '600.0', 600_000],
    [waits, '0.5', 500],
    [waits, '600', 600_000],
    [waits, '0', undefined],
    [waits, '-1', undefined],
    [waits, 'soon', undefined],
    [waits, '1e3', undefined],
  ])('comes with %s: %s → its client waits for %s ms', async (name, seconds, expected) => {
    expect((await complete({ headers: { [name]: seconds } })).status).toBe(200);
    expect(app.commands.at(-1)).toMatchObject({ timeoutMs: 600_000, queueMs: 240_000 });
    expect(app.commands.at(-1)?.clientTimeoutMs).toBe(expected);
  });

  it.each([
    [{}, undefined],
    [{ tools }, 'opaque'],
  ])('has %j → the parts that its answer has a place for: %s', async (fields, expected) => {
    expect((await complete({ fields })).status).toBe(200);
    expect(app.commands.at(-1)?.reasoning).toBe(expected);
  });

  it.each([false, true])('is a stored one → it has the id of the chat (stream: %s)', async (stream) => {
    reply = async (command) => {
      command.storeOptions?.onResolved('stored', { isReplayed: true });
      command.stream?.sink.begin();
      return greeting;
    };
    const response = await complete({ fields: { stream }, headers: { 'Idempotency-Key': 'k' } });
    expect(response.headers.get('idempotency-replayed')).toBe('true');
    expect(response.headers.get('content-location')).toBe('/v1/chat/stored');
    expect(response.text).toContain('"id":"chatcmpl-stored"');
  });

  it.each([false, true])('is asked for with respond-async → it is accepted (stream: %s)', async (stream) => {
    reply = async () => accepted;
    const response = await complete({ fields: { stream }, headers: { Prefer: 'respond-async' } });
    expect([response.status, response.headers.get('location')]).toEqual([202, '/v1/chat/the-id']);
    expect(response.body).toEqual({ id: 'the-id', status: 'queued' });
    expect(app.commands.at(-1)?.stream).toBeUndefined();
  });

  it('is asked for by a page of an allowed origin → with the headers of OpenAI’s client', async () => {
    const asked = 'authorization,user-agent,x-stainless-timeout';
    const preflight = { 'Access-Control-Request-Method': 'POST', 'Access-Control-Request-Headers': asked };
    const headers = { Origin: 'https://app.example', ...preflight };
    const response = await app.ask({ method: 'OPTIONS', path, headers });
    expect(response.status).toBe(204);
    expect(response.headers.get('access-control-allow-headers')).toBe(asked);
  });

  it.each([false, true])('calls tools → so it says, whole and streamed (stream: %s)', async (stream) => {
    const ignored = ['temperature', 'toolChoice'];
    const called = { kind: 'call', id: 'a', name: 'weather', at: 5 } as const;
    const completion = { ...greeting.completion, text: 'Look:{}', ignored, marks: [called] };
    reply = async (command) => {
      command.stream?.sink.begin({ ignored });
      return { kind: 'completed', completion };
    };
    const response = await complete({ fields: { tools, stream, model: 'vertexai/m' } });
    expect(app.commands.at(-1)?.parameters).toEqual({ tools: [{ name: 'weather', strict: true }] });
    expect(response.headers.get('x-ignored-fields')).toBe('tools.strict, temperature, tool_choice');
    expect(response.text).toContain('"finish_reason":"tool_calls"');
    if (stream) return;
    expect(response.headers.get('x-llm-finish-reason')).toBe('tool_calls');
    expect(isCompletionOfOpenAi(response.body)).toBe(true);
  });
});

const tools = [{ type: 'function', function: { name: 'weather', strict: true } }];
const hints = { temperature: 0.2, top_p: 0.9, seed: 7, frequency_penalty: 1 };

describe('what a chat completion has that is not read', () => {
  const cache_control = { type: 'ephemeral' };
  const image_url = { url: 'https://example.com/a.png', detail: 'high' };
  const shown = { ...user, name: 'a', content: [{ type: 'image_url', image_url, cache_control }] };
  const ofWeather = { name: 'weather', arguments: '{}', x: 1 };
  const call = { id: 'a', type: 'function', function: ofWeather, y: 1, extra_content: { google: {}, z: {} } };
  const called = [
    { role: 'assistant', tool_calls: [call] },
    { role: 'tool', tool_call_id: 'a', content: 'Sun', name: 'weather' },
  ];
  const tool = { type: 'function', cache_control, function: { name: 'b', cache_control } };

  it.each<[object, string]>([
    [{}, ''],
    [{ ...JSON.parse('{"__proto__":{"n":2}}'), chat_id: 'x' }, '__proto__, chat_id'],
    [{ stream: true, stream_options: { x: 1 } }, 'stream_options/x'],
    [{ tools: [tool] }, 'tools/*/cache_control, tools/*/function/cache_control'],
    [{ store: true, service_tier: 'priority' }, 'service_tier, store'],
    [{ store: false, service_tier: 'default' }, ''],
    [{ model: 'anthropic/m', response_format: { type: 'json_object' } }, 'response_format'],
    [
      { messages: [shown] },
      'messages/*/content/*/cache_control, messages/*/content/*/image_url/detail, messages/*/name',
    ],
    [
      { messages: called },
      `messages/*/name, messages/*/tool_calls/*/extra_content/z, messages/*/tool_calls/*/function/x, messages/*/tool_calls/*/y`,
    ],
  ])('is named in a header: of %j', async (fields, names) => {
    const response = await complete({ fields });
    const ignored = response.headers.get('x-ignored-fields') ?? '';
    expect([response.status, ignored.split(', ').toSorted().join(', ')]).toEqual([200, names]);
  });

  const untakenBy = {
    anthropic: 'temperature, top_p, seed, frequency_penalty',
    bedrock: 'seed, frequency_penalty',
  };
  it.each([false, true])(
    'is a hint → those are named that who answers does not take (stream: %s)',
    async (stream) => {
      const asked = async (fields: object, headers: Record<string, string> = {}) => {
        const response = await complete({ fields: { ...hints, stream, ...fields }, headers });
        return [response.status, response.headers.get('x-ignored-fields')];
      };
      const model = 'anthropic/m';
      expect(await asked({ model, chat_id: 'x' })).toEqual([200, `chat_id, ${untakenBy.anthropic}`]);
      expect(await asked({ model: 'bedrock/m' })).toEqual([200, untakenBy.bedrock]);
      expect(await asked({})).toEqual([200, null]);
      reply = async (command) => {
        command.stream?.sink.begin({ writer: { provider: 'bedrock', model: 'm' } });
        return passedOnTo('bedrock', 'anthropic');
      };
      expect(await asked({ model })).toEqual([200, untakenBy.bedrock]);
      reply = async () => accepted;
      expect(await asked({ model }, { Prefer: 'respond-async' })).toEqual([202, untakenBy.anthropic]);
    },
  );

  const schema = { type: 'object', additionalProperties: { type: 'string' } };
  const map = { response_format: { type: 'json_schema', json_schema: { name: 'x', schema } } };
  const untaken = { param: 'temperature', message: 'temperature is not taken by anthropic.' };
  const notStrict = 'tools has strict, which is not taken by vertexai.';
  const refused = { status: 400, code: 'invalid_request' };
  it.each<[object, string, object | undefined]>([
    [{ chat_id: 'x' }, 'none', { param: 'chat_id', message: 'chat_id is not a field of a chat completion.' }],
    [{ store: true }, 'none', { param: 'store', message: 'store is not supported here.' }],
    [{ service_tier: 'priority' }, 'none', { param: 'service_tier' }],
    [{ response_format: { type: 'json_object' } }, 'bedrock', { param: 'response_format' }],
    [{ model: 'anthropic/m', temperature: 0.2 }, 'none', untaken],
    [{ temperature: 0.2 }, 'bedrock, anthropic/m', untaken],
    [{ temperature: 0.2 }, 'bedrock', undefined],
    [{ tools, model: 'vertexai/m' }, 'none', { message: notStrict }],
    [{ tools }, 'vertexai', { param: 'tools' }],
    // Such a fallback is not asked at all.
    [{ tools, ...map }, 'anthropic', undefined],
  ])('is refused under handling=strict, of a fallback, too: %j, %s', async (fields, fallback, error) => {
    const headers = { Prefer: 'handling=strict', 'X-LLM-Fallback': fallback };
    const response = await complete({ fields, headers });
    expect(response.headers.get('preference-applied')).toBe('handling=strict');
    if (error) return expect(errorOf(response)).toMatchObject({ ...refused, ...error });
    expect(response.status).toBe(200);
    // For the fallback of the operators, which is known later.
    expect(app.commands.at(-1)).toMatchObject({ isStrict: true });
  });
});

describe('the models', () => {
  const [gpt, other] = [
    { id: 'openai/gpt', object: 'model', created: 1_700_000_000, owned_by: 'openai' },
    { id: 'vertexai/publishers/x/models/y', object: 'model', created: 1_700_000_001, owned_by: 'vertexai' },
  ];

  /** A name that the operators have given a model. */
  const luna = { id: 'gpt-6-luna', object: 'model', created: expect.any(Number), owned_by: 'anthropic' };

  it.each([
    ['/v1/models', { object: 'list', data: [gpt, other, luna] }],
    ['/v1/models/gpt-6-luna', luna],
    ['/v1/models/openai%2Fgpt', gpt],
    ['/v1/models/openai/gpt?x=/y', gpt],
    ['/v1/models/vertexai%2Fpublishers%2Fx%2Fmodels%2Fy', other],
    ['/v1/models/vertexai/publishers/x%2Fmodels/y', other],
  ])('are at %s', async (at, expected) => {
    const { status, body } = await get(at);
    expect([status, body]).toEqual([200, expected]);
  });

  it('are asked for by a whole URL → they are there, too', async () => {
    const head = `GET http://a/v1/models/openai/gpt HTTP/1.1\r\nHost: a\r\nAuthorization: ${Authorization}`;
    expect(await saidTo(head)).toContain(JSON.stringify(gpt));
  });

  it.each(['gpt', 'openai/none', 'openai/gpt/', '__proto__', 'o4-*', 'o4-x'])(
    'are not at /v1/models/%s',
    async (id) => {
      const expected = { status: 404, param: 'model', code: 'model_not_found' };
      expect(errorOf(await get(`/v1/models/${id}`))).toMatchObject(expected);
    },
  );
});

describe('what goes wrong', () => {
  const canary = 'canary-of-the-caller';
  const said = (content: unknown, role = 'user') => ({ fields: { messages: [{ role, content }] } });
  const odd = { role: canary, [canary]: 1 };
  const bodyLimit = 'The body is larger than 33554432 bytes, the limit at this address.';
  const tooLarge = { status: 413, code: 'payload_too_large', message: bodyLimit };
  const wrongRole = { status: 400, code: 'invalid_request', param: 'messages[0].role' };

  it.each<[string, Call, object]>([
    ['depth', { body: `{"a":${'['.repeat(48)}` }, { status: 400, code: 'invalid_request' }],
    ['a large body', { body: ' '.repeat(33_554_433) }, tooLarge],
    ['no text', { fields: { messages: [] } }, { status: 400, code: 'empty_conversation' }],
    ['a value of another type', said(canary, canary), wrongRole],
    ['a thousand errors', { fields: { messages: Array(1000).fill(odd) } }, wrongRole],
    ['an unknown model', { fields: { model: canary } }, { status: 404, code: 'model_not_found' }],
    ['an unknown provider', { headers: { 'X-LLM': canary } }, { status: 404, code: 'unknown_provider' }],
  ])('is an error of OpenAI’s: %s', async (_, call, expected) => {
    const error = errorOf(await complete(call));
    expect(error).toMatchObject({ type: 'invalid_request_error', ...expected });
    expect(JSON.stringify(error)).not.toContain(canary);
  });

  it('is more bytes of images than a request may have → 413, which names the limit', async () => {
    const url = `data:image/png;base64,${'A'.repeat(28_000_000)}`;
    const error = errorOf(await complete(said([{ type: 'image_url', image_url: { url } }])));
    const limit = '20971520 bytes, the limit for all of them together.';
    expect(error).toMatchObject({
      status: 413,
      message: `The images of this request are larger than ${limit}`,
    });
  });

  it('is a chat that fails before its stream begins → the status of its failure', async () => {
    reply = () => Promise.reject(new Failure('overloaded'));
    expect(errorOf(await complete({ fields: { stream: true } }))).toMatchObject({ status: 503 });
  });

  it.each([
    ...['/v1', '/v1/', '/v1/chat/', '/v1/chat/completions/x', '/v1/models/', '/v1/blogs', '/v1/%ff'],
    ...['/v1/models/%ff', '/v1/openapi.json'],
  ])('is the address: %s', async (at) => {
    expect(errorOf(await get(at))).toMatchObject({ status: 404, code: 'not_found' });
  });

  it.each([
    ['GET', '/models'],
    ['POST', '/chat/completions'],
    ['POST', '/v1/v1/chat/completions'],
    ['GET', '/v1/v1/models'],
  ])('is the base address: %s %s', async (method, at) => {
    const expected = { status: 404, type: 'invalid_request_error', param: null, code: 'not_found' };
    expect(errorOf(await app.ask({ method, path: at }))).toEqual({ ...expected, message: wrongBase });
  });

  it.each([
    ['/v1/responses', 'responses', "setOpenAIAPI('chat_completions') in @openai/agents"],
    ['/v1/responses/resp_1/cancel', 'responses', 'useResponsesApi: false in LangChain'],
    ['/v1/completions', 'completions', 'openai.chat(…) in the AI SDK'],
    ['/v1/embeddings', 'embeddings', 'another server for embeddings'],
    ['/responses', 'responses', wrongBase],
    ['/v1/v1/responses', 'responses', wrongBase],
  ])('is another of OpenAI’s APIs, %s → %s is named, with what to use instead', async (at, name, instead) => {
    const error = errorOf(await app.ask({ path: at, body: {} }));
    expect(error).toMatchObject({ status: 404, type: 'invalid_request_error', code: 'not_found' });
    expect(error).toHaveProperty('message', expect.stringContaining(`does not have /v1/${name}: `));
    expect(error).toHaveProperty('message', expect.stringContaining(instead));
  });

  const named = /^This server does not have \/(v1\/messages|v1beta|api\/chat): use a client of OpenAI’s /;
  const message = expect.stringMatching(named);
  const notFound = { type: 'error', error: { type: 'not_found_error', message } };
  it.each([
    ['/v1/messages?beta=true', { ...notFound, request_id: expect.any(String) }],
    ['/v1beta/models/gemini:generateContent', { error: { code: 404, message, status: 'NOT_FOUND' } }],
    ['/api/chat', { error: message }],
  ])('is another company’s API, %s → 404 of its own, with what to use instead', async (at, expected) => {
    const { status, headers, body } = await app.ask({ path: at, body: {} });
    expect([status, headers.get('content-type')]).toEqual([404, 'application/json; charset=utf-8']);
    expect(body).toEqual(expected);
  });

  it('is known before any operation is chosen → it is an error of OpenAI’s, too', async () => {
    const told = await saidTo('GET /v1/models HTTP/1.1\r\nHost: a\r\nHost: b');
    expect(told).toMatch(/^HTTP\/1.1 400 /);
    expect(told).toContain('{"error":{"message":');
  });
});

describe('with chat and blog at addresses below /v1', async () => {
  const ofChat = { CHAT_BASE_URL: 'http://x/v1/a', CHAT_BASE_URL_ALT: 'http://x/b' };
  const mounted = await startApp({ variables: { ...ofChat, BLOG_BASE_URL: 'http://x/v1' } });
  afterAll(mounted.close);

  it.each([
    ['POST', '/v1/blogs', 401],
    ['PATCH', '/v1/blogs', 405],
    ['GET', '/v1/a/chat', 405],
    ['GET', '/v1/a/chat/x', 401],
    // A stored chat, or a post, may be called as an operation of OpenAI's.
    ['GET', '/b/chat/completions', 401],
    ['GET', '/v1/blogs/models', 503],
  ])('%s %s → a problem, %i', async (method, at, status) => {
    const response = await mounted.ask({ method, path: at });
    const type = expect.stringMatching(/^application\/problem\+json/);
    expect([response.status, response.headers.get('content-type')]).toEqual([status, type]);
  });

  it.each<[string, string, object]>([
    ['GET', '/v1/chat', { status: 404 }],
    ['GET', '/v1/a/models', { status: 404 }],
    ['GET', path, { status: 405 }],
    ['POST', '/chat/completions', { message: wrongBase }],
    ['POST', '/b/chat/completions', { message: wrongBase }],
    ['POST', '/b/responses', { message: expect.stringContaining(wrongBase) }],
  ])('%s %s → an error of OpenAI’s', async (method, at, expected) => {
    expect(errorOf(await mounted.ask({ method, path: at }))).toMatchObject(expected);
  });
});

it('chat and blog have addresses that another API has → they are theirs', async () => {
  const variables = { CHAT_BASE_URL: 'http://x/api', BLOG_BASE_URL: 'http://x/v1/files' };
  const mounted = await startApp({ variables });
  const statusOf = async (method: string, at: string) => (await mounted.ask({ method, path: at })).status;
  expect(await statusOf('POST', '/api/chat')).toBe(401);
  expect(await statusOf('GET', '/v1/files/blogs')).toBe(503);
  await mounted.close();
});
