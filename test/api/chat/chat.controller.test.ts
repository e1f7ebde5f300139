import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { ChatCommand, ChatReply } from '../../../api/chat/chat-command.js';
import { Failure } from '../../../shared/failures.js';
import { type ChatApp, startChatApp } from '../../support/chat-app.js';
import { userNamed } from '../../support/identities.js';
import { patience } from '../../support/patience.js';

let app: ChatApp;
/** The chat service's reaction to the next command. */
let reply: ((signal: AbortSignal, command: ChatCommand) => Promise<ChatReply>) | undefined;
beforeAll(async () => {
  app = await startChatApp({ reply: (command) => reply?.(command.signal, command) });
});
afterAll(() => app.close());

const credentials = { Authorization: `Basic ${btoa('user:secret')}` };
const prefer = (value: string) => ({ headers: { Prefer: value } });

describe('Prefer', () => {
  it('sets the deadline with wait, and the response says so', async () => {
    const { status, headers } = await app.post(prefer('return=minimal, wait=7'));
    expect(status).toBe(200);
    expect(headers.get('preference-applied')).toBe('wait=7');
    expect(app.commands.at(-1)).toMatchObject({ waitMs: 7000, storeOptions: undefined });
  });

  it.each(['handling=lenient', 'respond-async=no', 'return=minimal', ''])(
    'is ignored as %j',
    async (value) => {
      const { status, headers } = await app.post(prefer(value));
      expect(status).toBe(200);
      expect(headers.get('preference-applied')).toBeNull();
      expect(app.commands.at(-1)).toMatchObject({ waitMs: undefined, storeOptions: undefined });
    },
  );

  it.each(['wait=0', 'wait=301', 'wait', 'wait=soon'])('is refused as %s', async (value) => {
    const response = await app.post(prefer(value));
    expect(response.status).toBe(400);
    expect(response.headers.get('preference-applied')).toBeNull();
    expect(await response.json()).toMatchObject({
      code: 'invalid_request',
      errors: [{ pointer: 'Prefer', detail: 'wait must be a whole number of seconds from 1 to 300' }],
    });
  });

  it('is named in problems as well, once it was accepted', async () => {
    reply = () => Promise.reject(new Failure('timeout'));
    const response = await app.post(prefer('wait=7'));
    reply = undefined;
    expect(response.status).toBe(500);
    expect(response.headers.get('preference-applied')).toBe('wait=7');
  });
});

const post = (body: object, value = '') =>
  app.post({ body: JSON.stringify(body), headers: { Prefer: value } });

describe('fields that nothing reads', () => {
  const message = { role: 'user', content: 'Hi' };

  it('are named, of the body and of its messages, and nothing is where there are none', async () => {
    const body = {
      model: 'gpt',
      stream: true,
      messages: [message, { ...message, name: 'a' }, { ...message, name: 'b' }],
    };
    const { status, headers } = await post(body);
    expect(status).toBe(200);
    expect(headers.get('x-ignored-fields')).toBe('model, stream, messages/*/name');
    expect(headers.get('preference-applied')).toBeNull();
    expect(app.commands.at(-1)?.turns).toEqual([message, message, message]);
    expect((await post({ messages: [message] })).headers.get('x-ignored-fields')).toBeNull();
  });

  it('are named where they may explain a failure', async () => {
    const response = await post({ messages: [{ role: 'user', text: 'Hi' }] });
    expect(await response.json()).toMatchObject({ status: 400, code: 'empty_conversation' });
    expect(response.headers.get('x-ignored-fields')).toBe('messages/*/text');
  });

  it('are escaped, cut and counted', async () => {
    const odd = { 'a, b': 1, 'ä\r\nX-Evil: 1': 1, ['k'.repeat(500_000)]: 1, '': 1 };
    const { headers } = await post({ ...odd, messages: [message] });
    const name = 'k'.repeat(60);
    expect(headers.get('x-ignored-fields')).toBe(`a%2C%20b, %C3%A4%0D%0AX-Evil%3A%201, ${name}..., ""`);
    const many = Object.fromEntries(Array.from({ length: 5000 }, (_, n) => [`${'k'.repeat(55)}${n}`, 1]));
    const listed =
      (await post({ messages: [{ ...message, ...many }] })).headers.get('x-ignored-fields') ?? '';
    expect(listed.split(', ')).toHaveLength(21);
    expect(listed).toMatch(/, \.\.\.$/);
    expect(listed.length).toBeLessThan(1600);
  });

  it('are refused under handling=strict, with what else is wrong', async () => {
    const before = app.commands.length;
    const messages = [
      { role: 'tool', content: 'Hi' },
      { ...message, 'a/b~c': 'secret' },
    ];
    const response = await post({ temperature: 0.1, messages }, 'handling=strict');
    expect(response.headers.get('preference-applied')).toBe('handling=strict');
    expect(response.headers.get('x-ignored-fields')).toBeNull();
    expect(await response.json()).toMatchObject({
      status: 400,
      code: 'invalid_request',
      errors: [
        { pointer: '/messages/0/role', detail: 'is not one of the documented values' },
        { pointer: '/temperature', detail: 'is not a field of a chat' },
        { pointer: '/messages/1/a~1b~0c', detail: 'is not a field of a message' },
      ],
    });
    expect(app.commands).toHaveLength(before);
  });

  it('are no reason to refuse anything else under handling=strict', async () => {
    const { status, headers } = await post({ messages: [message] }, 'handling=Strict, wait=7');
    expect(status).toBe(200);
    expect(headers.get('preference-applied')).toBe('handling=strict, wait=7');
    reply = async () => accepted;
    const later = await post({ messages: [message] }, 'respond-async, handling=strict');
    reply = undefined;
    expect(later.status).toBe(202);
    expect(later.headers.get('preference-applied')).toBe('handling=strict, respond-async');
  });
});

const accepted: ChatReply = { kind: 'accepted', id: 'the-id', status: 'queued' };
const replayed: ChatReply = {
  kind: 'completed',
  completion: { kind: 'ok', text: 'Again', model: 'm', queueMs: 0, providerMs: 0 },
};

describe('Prefer: respond-async', () => {
  it.each([
    ['respond-async', undefined, 'respond-async'],
    ['wait=7, respond-async', 7000, 'respond-async, wait=7'],
  ])('as %s is answered with 202 and where the chat is', async (value, waitMs, applied) => {
    reply = async () => accepted;
    const response = await app.post(prefer(value));
    reply = undefined;
    expect(response.status).toBe(202);
    expect(response.headers.get('location')).toBe('/chat/the-id');
    expect(response.headers.get('preference-applied')).toBe(applied);
    expect(await response.json()).toEqual({ id: 'the-id', status: 'queued' });
    const storeOptions = {
      owner: userNamed('user'),
      key: undefined,
      isAsync: true,
    };
    expect(app.commands.at(-1)).toMatchObject({ waitMs, storeOptions });
  });

  it('names the base path of the request', async () => {
    reply = async () => accepted;
    const response = await app.post({ ...prefer('respond-async'), path: '/v1/chat' });
    reply = undefined;
    expect(response.headers.get('location')).toBe('/v1/chat/the-id');
  });

  it('is answered with 200 when the reply is there in time', async () => {
    const response = await app.post(prefer('respond-async, wait=7'));
    expect(response.status).toBe(200);
    expect(response.headers.get('preference-applied')).toBe('wait=7');
    expect(response.headers.get('location')).toBeNull();
  });
});

describe('Content-Location', () => {
  const headers = { 'Idempotency-Key': 'k' };
  it.each([
    ['the reply', 200, () => Promise.resolve(replayed)],
    ['a failure', 500, () => Promise.reject(new Failure('timeout'))],
  ])('comes with %s and says where the chat is', async (_, status, settle) => {
    reply = (_signal, { storeOptions }) => {
      storeOptions?.onResolved('the-id', { isReplayed: false });
      return settle();
    };
    const response = await app.post({ headers, path: '/v1/chat' });
    reply = undefined;
    expect(response.status).toBe(status);
    expect(response.headers.get('content-location')).toBe('/v1/chat/the-id');
  });

  it('is not sent for a chat that is not stored', async () => {
    expect((await app.post({})).headers.get('content-location')).toBeNull();
  });
});

describe('Idempotency-Key', () => {
  it('reaches the chat service with its owner', async () => {
    await app.post({ headers: { 'Idempotency-Key': '~'.repeat(255) } });
    expect(app.commands.at(-1)?.storeOptions).toMatchObject({
      owner: userNamed('user'),
      key: '~'.repeat(255),
      isAsync: false,
    });
  });

  it.each(['', 'a b', 'x'.repeat(256), 'é', 'one, one'])('is refused as %j', async (key) => {
    const response = await app.post({ headers: { 'Idempotency-Key': key } });
    expect(response.status).toBe(400);
    const errors = [{ pointer: 'Idempotency-Key', detail: 'must be 1 to 255 visible ASCII characters' }];
    expect(await response.json()).toMatchObject({ code: 'invalid_request', errors });
  });

  it('marks replayed replies and failures', async () => {
    reply = async (_signal, { storeOptions }) => {
      storeOptions?.onResolved('the-id', { isReplayed: true });
      return replayed;
    };
    const ok = await app.post({ headers: { 'Idempotency-Key': 'k' } });
    expect([ok.status, ok.headers.get('idempotency-replayed')]).toEqual([200, 'true']);
    reply = async (_signal, { storeOptions }) => {
      storeOptions?.onResolved('the-id', { isReplayed: true });
      throw new Failure('content_blocked');
    };
    const failed = await app.post({ headers: { 'Idempotency-Key': 'k' } });
    reply = undefined;
    expect([failed.status, failed.headers.get('idempotency-replayed')]).toEqual([500, 'true']);
  });
});

describe('/chat/{id}', () => {
  it.each(['%00', '1', '__proto__', '%'])('is nothing at %s', async (id) => {
    for (const method of ['GET', 'DELETE']) {
      const response = await fetch(`${app.url}/chat/${id}`, { method, headers: credentials });
      expect([response.status, await response.json()]).toEqual([
        404,
        expect.objectContaining({ code: 'not_found' }),
      ]);
    }
  });

  it('requires credentials before anything else, and has two methods', async () => {
    const address = `${app.url}/chat/${crypto.randomUUID()}`;
    expect((await fetch(address)).status).toBe(401);
    expect((await fetch(address, { method: 'DELETE' })).status).toBe(401);
    const response = await fetch(address, { method: 'PUT', headers: credentials });
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, HEAD, DELETE']);
  });

  it('cannot be read while the queue is not connected', async () => {
    const response = await fetch(`${app.url}/chat/${crypto.randomUUID()}`, { headers: credentials });
    expect([response.status, await response.json()]).toEqual([
      500,
      expect.objectContaining({ code: 'queue_unavailable' }),
    ]);
  });
});

describe('a client', () => {
  it('aborts the command when it disconnects before the response', async () => {
    const received = Promise.withResolvers<AbortSignal>();
    reply = (signal) => {
      received.resolve(signal);
      return new Promise((_, reject) =>
        signal.addEventListener('abort', () => reject(new Failure('timeout'))),
      );
    };
    const client = new AbortController();
    const response = app.post({ signal: client.signal }).catch((error: Error) => error.name);
    const signal = await received.promise;
    expect(signal.aborted).toBe(false);
    client.abort();
    expect(await response).toBe('AbortError');
    await new Promise((resolve) => {
      if (signal.aborted) resolve(undefined);
      signal.addEventListener('abort', resolve);
    });
    reply = undefined;
  });

  it('aborts nothing once it has its response, also when it closes the connection then', async () => {
    await (await app.post({ headers: { Connection: 'close' } })).text();
    await (await app.post({})).text();
    expect(app.commands.at(-2)?.signal.aborted).toBe(false);
    expect(app.commands.at(-1)?.signal.aborted).toBe(false);
  });
});

describe('the time that a body takes', () => {
  it('counts as time that the request has taken', async () => {
    // The clock stands still but for what the test adds.
    vi.useFakeTimers({ toFake: ['performance'] });
    onTestFinished(() => void vi.useRealTimers());
    const { port } = new URL(app.url);
    const socket = connect(Number(port), '127.0.0.1');
    const body = '{"messages":[{"content":"Hello"}]}';
    const head = `POST /chat HTTP/1.1\r\nHost: x\r\nAuthorization: ${credentials.Authorization}\r\nX-LLM: openai\r\n`;
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
  const lines = (): Record<string, unknown>[] =>
    JSON.parse(app.logs()).filter(({ msg }: { msg: string }) => msg === 'request');
  const lineOf = async (response: Response) => {
    const requestId = response.headers.get('x-request-id');
    return vi.waitFor(() => {
      const line = lines().find((one) => one.requestId === requestId);
      expect(line).toBeDefined();
      return line;
    }, patience);
  };

  it('says with which code the request failed', async () => {
    reply = () => Promise.reject(new Failure('overloaded'));
    const failed = await app.post({});
    reply = undefined;
    expect(await lineOf(failed)).toMatchObject({ status: 500, code: 'overloaded' });
    expect(await lineOf(await app.post({ body: '{' }))).toMatchObject({ status: 400, code: 'invalid_json' });
    const refused = await app.post({ headers: { Authorization: 'Basic none' } });
    expect(await lineOf(refused)).toMatchObject({ status: 401, code: 'unauthorized' });
  });

  it('has no code when all went well', async () => {
    expect(await lineOf(await app.post({}))).not.toHaveProperty('code');
  });
});
