import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { ChatCommand, ChatReply } from '../../../../api/chat/chat-command.js';
import { Failure } from '../../../../shared/failures.js';
import { basic, greeting, startApp } from '../../../support/app.js';
import { userNamed } from '../../../support/identities.js';
import { patience } from '../../../support/patience.js';

/** The chat service's reaction to the next commands. */
let reply: ((command: ChatCommand) => Promise<ChatReply>) | undefined;
const app = await startApp({ reply: (command) => reply?.(command) });
afterAll(app.close);
afterEach(() => {
  reply = undefined;
});

const message = { role: 'user', content: 'Hi' };
const post = (body: object, value = '') =>
  app.chat({ body: { messages: [message], ...body }, headers: { Prefer: value } });
const failing = (code: ConstructorParameters<typeof Failure>[0]) => () => Promise.reject(new Failure(code));
const accepted: ChatReply = { kind: 'accepted', id: 'the-id', status: 'queued' };

describe('Prefer', () => {
  it.each([
    ['return=minimal, wait=7', 200, 7000, 'wait=7'],
    ['handling=Strict, wait=7', 500, 7000, 'handling=strict, wait=7'],
    ['handling=lenient, respond-async=no', 200, undefined, null],
    ['', 200, undefined, null],
  ])(
    'is %j → the chat, which ends with %i, may take %s ms, and %s is applied',
    async (value, end, waitMs, applied) => {
      if (end === 500) reply = failing('timeout');
      const { status, headers } = await post({}, value);
      expect([status, headers.get('preference-applied')]).toEqual([end, applied]);
      expect(app.commands.at(-1)).toMatchObject({ waitMs, storeOptions: undefined });
    },
  );

  it('has a wait that is none → it is refused, and nothing was applied', async () => {
    const { status, headers, body } = await post({}, 'wait=0');
    expect([status, headers.get('preference-applied')]).toEqual([400, null]);
    expect(body).toMatchObject({ code: 'invalid_request', errors: [{ pointer: 'Prefer' }] });
  });

  it.each([
    ['respond-async', '/chat', undefined, 'respond-async'],
    ['wait=7, respond-async', '/v1/chat', 7000, 'respond-async, wait=7'],
    ['respond-async, handling=strict', '/chat', undefined, 'handling=strict, respond-async'],
  ])('is %s → 202 from %s, and where the chat is', async (value, path, waitMs, applied) => {
    reply = async () => accepted;
    const { status, headers, body } = await app.chat({ headers: { Prefer: value }, path });
    expect([status, headers.get('location')]).toEqual([202, `${path}/the-id`]);
    expect(headers.get('preference-applied')).toBe(applied);
    expect(body).toEqual({ id: 'the-id', status: 'queued' });
    const storeOptions = { owner: userNamed('user'), key: undefined, isAsync: true };
    expect(app.commands.at(-1)).toMatchObject({ waitMs, storeOptions });
  });

  it('is respond-async and the reply is there in time → 200', async () => {
    const { status, headers } = await post({}, 'respond-async, wait=7');
    expect([status, headers.get('preference-applied')]).toEqual([200, 'wait=7']);
    expect(headers.get('location')).toBeNull();
  });
});

describe('a conversation that is changed', () => {
  const blank = { role: 'user', content: ' ' };
  const later = { role: 'system', content: 'Be kind.' };

  it('here and by the worker → the answer names both changes', async () => {
    const completion = { kind: 'ok', text: 'a', model: 'm', queueMs: 0, providerMs: 0 } as const;
    reply = async () => ({ kind: 'completed', completion: { ...completion, changes: ['marked-system'] } });
    const { headers } = await post({ messages: [message, blank, later] });
    expect(headers.get('x-conversation-changes')).toBe('marked-system, dropped-blank');
    expect(app.commands.at(-1)).toMatchObject({ changes: ['dropped-blank'] });
  });

  it('nowhere → no header', async () => {
    const { headers } = await post({ messages: [message, later] });
    expect(headers.get('x-conversation-changes')).toBeNull();
  });

  it.each([
    ['dropped-blank', 'openai', [message, blank], ''],
    ['marked-system for bedrock', 'bedrock', [message, later], ''],
    ['marked-system for vertexai', 'openai', [message, later], 'vertexai, anthropic'],
    ['marked-system for bedrock, vertexai', 'bedrock', [message, later], 'vertexai, bedrock/other'],
    ['continued for anthropic', 'anthropic', [message, { role: 'assistant', content: 'a' }], ''],
    ['', 'anthropic', [later, message, later], ''],
    ['', 'openai', [later, message, later], 'anthropic'],
  ])(
    'by %j under handling=strict, %s → it is refused if there is one',
    async (name, llm, messages, others) => {
      const headers = {
        Prefer: 'handling=strict',
        'X-LLM': llm,
        ...(others && { 'X-LLM-Fallback': others }),
      };
      const response = await app.chat({ body: { messages }, headers });
      expect(response.status).toBe(name ? 400 : 200);
      const errors = [{ pointer: '/messages', detail: expect.stringContaining(`(${name})`) }];
      if (name) expect(response.body).toMatchObject({ code: 'invalid_request', errors });
    },
  );
});

describe('fields that nothing reads', () => {
  it.each([
    ['none', {}, null],
    [
      'of the body and of messages',
      { model: 'gpt', messages: [message, { ...message, name: 'a' }, { ...message, name: 'b' }] },
      'model, messages/*/name',
    ],
    [
      'with odd names',
      { 'a, b': 1, 'ä\r\nX-Evil: 1': 1, ['k'.repeat(500_000)]: 1, '': 1 },
      `a%2C%20b, %C3%A4%0D%0AX-Evil%3A%201, ${'k'.repeat(60)}..., ""`,
    ],
  ])('are named in a header: %s', async (_, body, names) => {
    const { status, headers } = await post(body);
    expect([status, headers.get('x-ignored-fields')]).toEqual([200, names]);
    const { texts } = app.commands.at(-1)?.written ?? { texts: { turns: '[]' } };
    const turns = 'turns' in texts ? texts.turns : '[]';
    expect(JSON.parse(turns)[0]).toEqual(message);
  });

  it('are thousands → the first twenty are named', async () => {
    const many = Object.fromEntries(Array.from({ length: 5000 }, (_, n) => [`${'k'.repeat(55)}${n}`, 1]));
    const { headers } = await post({ messages: [{ ...message, ...many }] });
    const listed = headers.get('x-ignored-fields') ?? '';
    expect(listed.split(', ')).toHaveLength(21);
    expect(listed).toMatch(/, \.\.\.$/);
    expect(listed.length).toBeLessThan(1600);
  });

  it('may explain a failure → they are named with it', async () => {
    const response = await post({ messages: [{ role: 'user', text: 'Hi' }] });
    expect(response.body).toMatchObject({ status: 400, code: 'empty_conversation' });
    expect(response.headers.get('x-ignored-fields')).toBe('messages/*/text');
  });

  it('come with handling=strict → they are refused, with what else is wrong', async () => {
    const before = app.commands.length;
    const messages = [
      { ...message, role: 'tool' },
      { ...message, 'a/b~c': 'secret' },
    ];
    const response = await post({ temperature: 0.1, messages }, 'handling=strict');
    expect(response.headers.get('preference-applied')).toBe('handling=strict');
    expect(response.headers.get('x-ignored-fields')).toBeNull();
    expect(response.body).toMatchObject({
      ...{ status: 400, code: 'invalid_request' },
      errors: [
        { pointer: '/messages/0/role', detail: 'must be one of: system, user, assistant' },
        { pointer: '/temperature', detail: 'is not a field of a chat' },
        { pointer: '/messages/1/a~1b~0c', detail: 'is not a field of a message' },
      ],
    });
    expect(app.commands).toHaveLength(before);
  });
});

describe('Idempotency-Key', () => {
  const keyed = (key: string, path = '/chat') => app.chat({ headers: { 'Idempotency-Key': key }, path });

  it('is as long as it may be → the chat is stored with it and its owner', async () => {
    await keyed('~'.repeat(255));
    const storeOptions = { owner: userNamed('user'), key: '~'.repeat(255), isAsync: false };
    expect(app.commands.at(-1)).toMatchObject({ storeOptions });
  });

  it.each(['', 'a b', 'x'.repeat(256), 'é', 'one, one'])('is %j → refused', async (key) => {
    const response = await keyed(key);
    const errors = [{ pointer: 'Idempotency-Key', detail: 'must be 1 to 255 visible ASCII characters' }];
    expect(response.body).toMatchObject({ status: 400, code: 'invalid_request', errors });
  });

  it.each([
    ['a reply', 200, false, async () => greeting],
    ['a failure of before', 500, true, failing('content_blocked')],
  ])(
    'has led to %s → the answer says where the chat is, and how old',
    async (_, status, isReplayed, settle) => {
      reply = ({ storeOptions }) => {
        storeOptions?.onResolved('the-id', { isReplayed });
        return settle();
      };
      const response = await keyed('k', '/v1/chat');
      expect(response.headers.get('content-location')).toBe('/v1/chat/the-id');
      expect(response.headers.get('idempotency-replayed')).toBe(isReplayed ? 'true' : null);
      expect(response.status).toBe(status);
    },
  );

  it('is absent → the chat is not stored, and is nowhere', async () => {
    expect((await post({})).headers.get('content-location')).toBeNull();
  });
});

describe('/chat/{id}', () => {
  const headers = { Authorization: basic('user') };
  const at = async (id: string, method = 'GET') =>
    (await app.ask({ method, path: `/chat/${id}`, headers })).body;

  it.each(['%00', '1', '__proto__', '%'])('is no id: %s → there is nothing', async (odd) => {
    for (const method of ['GET', 'DELETE'])
      expect(await at(odd, method)).toMatchObject({ status: 404, code: 'not_found' });
  });

  it('is asked for without a queue → it says so', async () => {
    expect(await at(crypto.randomUUID())).toMatchObject({ status: 500, code: 'queue_unavailable' });
  });
});

describe('a client', () => {
  it('disconnects before the response → its command is aborted', async () => {
    const received = Promise.withResolvers<AbortSignal>();
    reply = ({ signal }) => {
      received.resolve(signal);
      return new Promise((_, reject) =>
        signal.addEventListener('abort', () => reject(new Failure('timeout'))),
      );
    };
    const client = new AbortController();
    const response = app.chat({ signal: client.signal }).catch((error: Error) => error.name);
    const signal = await received.promise;
    expect(signal.aborted).toBe(false);
    client.abort();
    expect(await response).toBe('AbortError');
    await vi.waitFor(() => expect(signal.aborted).toBe(true), patience);
  });

  it('has its response, and closes the connection then → nothing is aborted', async () => {
    await app.chat({ headers: { Connection: 'close' } });
    await app.chat();
    expect(app.commands.slice(-2).map(({ signal }) => signal.aborted)).toEqual([false, false]);
  });

  it('takes its time for a body → it counts as time that the request has taken', async () => {
    // The clock stands still but for what the test adds.
    vi.useFakeTimers({ toFake: ['performance'] });
    onTestFinished(() => void vi.useRealTimers());
    const socket = connect(app.port, '127.0.0.1');
    const body = '{"messages":[{"content":"Hello"}]}';
    const head = `POST /chat HTTP/1.1\r\nHost: x\r\nAuthorization: ${basic('user')}\r\nX-LLM: openai\r\n`;
    socket.write(
      `${head}Content-Type: application/json\r\nContent-Length: ${body.length}\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n`,
    );
    // It says that it has got the head.
    await once(socket, 'data');
    vi.advanceTimersByTime(7000);
    socket.write(body);
    const said = Buffer.concat(await socket.toArray()).toString();
    expect(said).toMatch(/^HTTP\/1\.1 200/);
    expect(app.commands.at(-1)?.elapsedMs).toBe(7000);
  });
});

describe('the line of the log for a request', () => {
  it.each([
    ['went well', 200, undefined, {}, undefined],
    ['failed', 500, 'overloaded', {}, failing('overloaded')],
    ['could not be read', 400, 'invalid_json', { body: '{' }, undefined],
    ['was refused', 401, 'unauthorized', { headers: { Authorization: 'Basic none' } }, undefined],
  ])('that %s → has its status %i and its code, %s', async (_, status, code, call, settle) => {
    reply = settle;
    const requestId = (await app.chat(call)).headers.get('x-request-id');
    const line = await vi.waitFor(() => {
      const found = app.lines.find((one) => one.msg === 'request' && one.requestId === requestId);
      return found ?? expect.unreachable('not logged yet');
    }, patience);
    expect(line).toMatchObject({ status });
    expect(line.code).toBe(code);
  });
});
