import { connect } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { providerIds } from '../../shared/contract.js';
import { authorization, type ChatCall, type Deployment, startDeployment } from '../support/deployment.js';

let deployment: Deployment;
beforeAll(async () => {
  deployment = await startDeployment({
    store: inject('store'),
    variables: {
      OPENAI_TIMEOUT_MS: '2500',
      ANTHROPIC_TIMEOUT_MS: '2500',
      BEDROCK_TIMEOUT_MS: '2500',
      VERTEXAI_TIMEOUT_MS: '2500',
    },
  });
});
afterAll(() => deployment.stop());

interface Row {
  when: string;
  call: ChatCall;
  status: number;
  code: string;
  pointer?: string;
}

const basic = (credentials: string) => `Basic ${Buffer.from(credentials).toString('base64')}`;
const body = (value: unknown): ChatCall => ({ body: JSON.stringify(value) });
const nested = (depth: number) => `{"messages":[],"x":${'['.repeat(depth)}${']'.repeat(depth)}}`;

const badBodies: Row[] = [
  { when: 'the body is empty', call: { body: '' }, status: 400, code: 'invalid_json' },
  { when: 'the body is not JSON', call: { body: '{"messages":' }, status: 400, code: 'invalid_json' },
  {
    when: 'the body begins with a byte order mark',
    call: { body: '\uFEFF{"messages":[]}' },
    status: 400,
    code: 'invalid_json',
  },
  {
    when: 'the body is not UTF-8',
    call: { body: Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d]) },
    status: 400,
    code: 'invalid_json',
  },
  { when: 'the body is null', call: { body: 'null' }, status: 400, code: 'invalid_request', pointer: '' },
  { when: 'the body is an array', call: { body: '[]' }, status: 400, code: 'invalid_request' },
  {
    when: 'there are no messages',
    call: body({}),
    status: 400,
    code: 'invalid_request',
    pointer: '/messages',
  },
  {
    when: 'messages is null',
    call: body({ messages: null }),
    status: 400,
    code: 'invalid_request',
    pointer: '/messages',
  },
  {
    when: 'messages is an object',
    call: body({ messages: {} }),
    status: 400,
    code: 'invalid_request',
    pointer: '/messages',
  },
  {
    when: 'messages is a string',
    call: body({ messages: 'Hi' }),
    status: 400,
    code: 'invalid_request',
    pointer: '/messages',
  },
  {
    when: 'a message is null',
    call: body({ messages: [null] }),
    status: 400,
    code: 'invalid_request',
    pointer: '/messages/0',
  },
  {
    when: 'a message is a string',
    call: body({ messages: ['Hi'] }),
    status: 400,
    code: 'invalid_request',
    pointer: '/messages/0',
  },
  {
    when: 'a role is unknown',
    call: body({ messages: [{ content: 'a' }, { role: 'tool', content: 'b' }] }),
    status: 400,
    code: 'invalid_request',
    pointer: '/messages/1/role',
  },
  {
    when: 'a role is null',
    call: body({ messages: [{ role: null, content: 'b' }] }),
    status: 400,
    code: 'invalid_request',
    pointer: '/messages/0/role',
  },
  {
    when: 'a content is null',
    call: body({ messages: [{ content: null }] }),
    status: 400,
    code: 'invalid_request',
    pointer: '/messages/0/content',
  },
  {
    when: 'a content is a number',
    call: body({ messages: [{ content: 7 }] }),
    status: 400,
    code: 'invalid_request',
    pointer: '/messages/0/content',
  },
  { when: 'the nesting is 33 deep', call: { body: nested(32) }, status: 400, code: 'invalid_request' },
  {
    when: 'the nesting is 50,000 deep',
    call: { body: nested(50_000) },
    status: 400,
    code: 'invalid_request',
  },
  {
    when: 'a text has a lone surrogate',
    call: { body: '{"messages":[{"content":"\\ud83d"}]}' },
    status: 400,
    code: 'invalid_request',
  },
  {
    when: 'there are 1,001 messages',
    call: body({ messages: Array.from({ length: 1001 }, () => ({ content: 'a' })) }),
    status: 400,
    code: 'invalid_request',
    pointer: '/messages',
  },
  {
    when: 'there are no messages to say',
    call: body({ messages: [] }),
    status: 400,
    code: 'empty_conversation',
  },
  {
    when: 'every message is blank',
    call: body({ messages: [{ content: ' \n' }, {}] }),
    status: 400,
    code: 'empty_conversation',
  },
  {
    when: 'the body is larger than a mebibyte',
    call: { messages: [{ content: 'x'.repeat(1_048_576) }] },
    status: 413,
    code: 'payload_too_large',
  },
  {
    when: 'the body is a gzip bomb',
    call: { body: gzipSync(Buffer.alloc(50_000_000, 'a')), headers: { 'Content-Encoding': 'gzip' } },
    status: 413,
    code: 'payload_too_large',
  },
  {
    when: 'the body is text',
    call: { headers: { 'Content-Type': 'text/plain' } },
    status: 415,
    code: 'unsupported_media_type',
  },
  {
    when: 'the body is in UTF-16',
    call: { headers: { 'Content-Type': 'application/json; charset=utf-16' } },
    status: 415,
    code: 'unsupported_media_type',
  },
  {
    when: 'the encoding is unknown',
    call: { headers: { 'Content-Encoding': 'compress' } },
    status: 415,
    code: 'unsupported_media_type',
  },
];

const badHeaders: Row[] = [
  ...['', 'OpenAI', 'azure', 'openai, openai', 'openai,anthropic', '__proto__', 'constructor'].map(
    (provider) => ({
      when: `X-LLM is "${provider}"`,
      call: { provider },
      status: 400,
      code: 'unknown_provider',
    }),
  ),
  ...[
    '../../admin',
    'a b',
    '-x',
    'x'.repeat(257),
    'x'.repeat(129),
    'arn:aws:bedrock:us-east-1:1:inference-profile/x',
    'projects/p/locations/l/endpoints/1',
  ].map((model) => ({
    when: `X-LLM-Model is "${model.slice(0, 20)}"`,
    call: { model },
    status: 400,
    code: 'invalid_request',
    pointer: 'X-LLM-Model',
  })),
  ...[
    '',
    'Basic',
    'Basic !!!',
    basic('tester'),
    basic('tester:wrong'),
    basic('other:secret-of-the-tester'),
    'Bearer x',
    `Basic ${'A'.repeat(10_000)}`,
  ].map((Authorization) => ({
    when: `Authorization is "${Authorization.slice(0, 30)}"`,
    call: { headers: { Authorization }, body: 'not even JSON' },
    status: 401,
    code: 'unauthorized',
  })),
];

describe('an answer to a bad request', () => {
  it.each([...badBodies, ...badHeaders])(
    'is $status $code when $when',
    async ({ call, status, code, pointer }) => {
      const reply = await deployment.chat(call);
      expect(reply.body).toMatchObject({ status, code, type: expect.any(String), title: expect.any(String) });
      expect(reply.status).toBe(status);
      expect(reply.headers.get('content-type')).toMatch(/^application\/problem\+json/);
      expect(reply.body.requestId).toBe(reply.headers.get('x-request-id'));
      if (pointer !== undefined) expect(reply.body.errors).toEqual([{ pointer, detail: expect.any(String) }]);
      if (status === 401) {
        expect(reply.headers.get('www-authenticate')).toBe('Basic realm="chat", charset="UTF-8"');
      }
      if (code === 'unknown_provider') {
        for (const id of providerIds) expect(reply.body.detail).toContain(id);
      }
    },
  );

  it('is the same for every kind of bad credentials but for the request id', async () => {
    const replies = await Promise.all(
      ['', 'Bearer x', basic('tester:wrong')].map((Authorization) =>
        deployment.chat({ headers: { Authorization } }),
      ),
    );
    const [first, ...others] = replies.map(({ body: { requestId, ...rest } }) => rest);
    for (const other of others) expect(other).toEqual(first);
  });

  it('never repeats what the caller sent', async () => {
    const canary = 'canary31415';
    const calls: ChatCall[] = [
      body({ messages: [{ role: canary, content: 'x' }] }),
      body({ messages: canary }),
      { body: `{"messages": ${canary}}` },
      { provider: canary },
      { model: `${canary} ` },
      { path: `/${canary}` },
    ];
    for (const call of calls) {
      const reply = await deployment.chat(call);
      expect(JSON.stringify([reply.body, ...reply.headers])).not.toContain(canary);
    }
  });

  it('is 404 not_found at an address that does not exist', async () => {
    const { status, body } = await deployment.chat({ path: '/nothing' });
    expect({ status, code: body.code }).toEqual({ status: 404, code: 'not_found' });
  });

  it('is 404 for an address that cannot be decoded', async () => {
    const { status, body } = await deployment.chat({ path: '/%E0%A4%A' });
    expect({ status, code: body.code }).toEqual({ status: 404, code: 'not_found' });
  });

  it.each(['/chat', '/v1/chat'])(
    'is 405 method_not_allowed with Allow for another method on %s',
    async (path) => {
      for (const method of ['GET', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
        const response = await fetch(`${deployment.url}${path}`, {
          method,
          headers: { Authorization: authorization },
        });
        expect(response.status).toBe(405);
        expect(response.headers.get('allow')).toBe('POST');
        expect(await response.json()).toMatchObject({ code: 'method_not_allowed' });
      }
    },
  );

  it('is a problem even for headers that Node refuses', async () => {
    const response = await fetch(`${deployment.url}/chat`, {
      method: 'POST',
      headers: { 'X-Huge': 'x'.repeat(20_000) },
    });
    expect(response.status).toBe(431);
    expect(response.headers.get('content-type')).toBe('application/problem+json');
    expect(await response.json()).toMatchObject({ status: 431 });
  });
});

/** What the server says to bytes that no HTTP client would send. */
async function saidTo(bytes: string): Promise<string> {
  const socket = connect(Number(new URL(deployment.url).port), '127.0.0.1');
  socket.write(bytes);
  let said = '';
  for await (const chunk of socket.setEncoding('utf8')) said += chunk;
  return said;
}

describe('an answer to a request that is hardly one', () => {
  it.each([
    ['no Host', 'GET /livez HTTP/1.1\r\nConnection: close\r\n\r\n', 400],
    ['an expectation', 'POST /chat HTTP/1.1\r\nHost: x\r\nExpect: foo\r\nConnection: close\r\n\r\n', 401],
    ['no HTTP at all', 'hello\r\n\r\n', 400],
    ['a bad length', 'POST /chat HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n', 400],
  ])('is a problem for %s', async (_, bytes, status) => {
    const said = await saidTo(bytes);
    expect(said).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(said).toMatch(/content-type: application\/problem\+json/i);
    expect(said).toMatch(/x-request-id: [0-9a-f-]{36}/i);
  });
});

const faults = [
  { model: 'sim-status-500', code: 'provider_error' },
  { model: 'sim-status-529', code: 'provider_error' },
  { model: 'sim-truncated', code: 'provider_error' },
  { model: 'sim-reset-body', code: 'provider_error' },
  { model: 'sim-html', code: 'provider_error' },
  { model: 'sim-empty', code: 'provider_error' },
  { model: 'sim-null', code: 'provider_error' },
  { model: 'sim-status-400', code: 'provider_rejected' },
  { model: 'sim-status-401', code: 'provider_rejected' },
  { model: 'sim-unheard-of', code: 'provider_rejected' },
  { model: 'sim-blocked', code: 'content_blocked' },
  { model: 'sim-refused', code: 'content_blocked' },
  { model: 'sim-hang', code: 'provider_timeout' },
  { model: 'sim-hang-body', code: 'provider_timeout' },
  { model: 'sim-drip', code: 'provider_timeout' },
];

/** More calls that go well than the faults below, so that the breaker stays closed. */
const callsThatGoWell = 60;

describe.each(providerIds)('a fault of %s', { concurrent: true }, (provider) => {
  beforeAll(async () => {
    await Promise.all(Array.from({ length: callsThatGoWell }, () => deployment.chat({ provider })));
  });

  it.each(faults)('is 500 $code for $model, without a word of the provider', async ({ model, code }) => {
    const reply = await deployment.chat({ provider, model });
    expect(reply.status).toBe(500);
    expect(reply.body).toMatchObject({ status: 500, code, provider, retryable: expect.any(Boolean) });
    expect(reply.headers.get('retry-after')).toBeNull();
    expect(JSON.stringify(reply.body)).not.toMatch(/simulat/i);
  });

  it('closes the socket of a call that takes too long', async () => {
    const model = `sim-hang@${provider}`;
    await deployment.chat({ provider, model });
    const call = await deployment.simulator.waitForCall((made) => made.model === model);
    await call.closed;
    expect(call.clientClosedFirst).toBe(true);
  });

  it('is mended by one more call when it was a passing one', async () => {
    const model = `sim-fail-1-503-${provider}`;
    const { status } = await deployment.chat({ provider, model });
    expect(status).toBe(200);
    expect(deployment.simulator.calls.list({ model })).toHaveLength(2);
  });
});
