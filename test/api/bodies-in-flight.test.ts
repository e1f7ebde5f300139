import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { basic, greeting, startApp, type TestApp } from '../support/app.js';
import { patience, patienceMs } from '../support/patience.js';

const operator = 'Bearer operator';

let app: TestApp;
const sockets: Socket[] = [];
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await app.close();
});

/** Sends the head of a request, and what there is of its body. */
function begin(path: string, headers: readonly string[], body: Uint8Array = Buffer.alloc(0)): Socket {
  const socket = connect(app.port, '127.0.0.1').on('error', () => undefined);
  sockets.push(socket);
  const head = [
    `POST ${path} HTTP/1.1`,
    'Host: x',
    'Content-Type: application/json',
    'X-LLM: openai',
    ...headers,
  ];
  socket.write(Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), body]));
  return socket;
}

const answerOf = async (socket: Socket) =>
  String((await once(socket, 'data', { signal: AbortSignal.timeout(patienceMs) }))[0]);

/** The user begins a body of so many bytes and does not finish it. */
const hold = (user: string, bytes: number): Socket =>
  begin(
    '/chat',
    [`Authorization: ${basic(user)}`, `Content-Length: ${bytes + 16}`],
    Buffer.alloc(bytes, ' '),
  );

const large = JSON.stringify({
  messages: [{ content: 'x'.repeat(30_000) }],
  content: 'x',
  model: 'openai/m',
});
const conversation = (content: string) => JSON.stringify({ messages: [{ content }] });
const ask = (authorization: string, path = '/chat', body = large) =>
  app.chat({ path, body, headers: { Authorization: authorization } });

describe('bytes in flight', () => {
  it('count for their user from the first byte of a body until the request ends', async () => {
    app = await startApp({ variables: { CHAT_USER_MAX_QUEUED_BYTES: '100000' } });
    const held = hold('m', 90_000);
    await vi.waitFor(
      async () =>
        expect(await ask(basic('m'))).toMatchObject({ status: 429, body: { code: 'rate_limited' } }),
      patience,
    );
    expect((await ask(basic('v'))).status).toBe(200);
    held.destroy();
    await vi.waitFor(async () => expect((await ask(basic('m'))).status).toBe(200), patience);
  });

  it.each<[string, { body: string | Uint8Array; headers?: Record<string, string> }]>([
    [
      'inflated',
      { body: gzipSync(conversation('x'.repeat(90_000))), headers: { 'Content-Encoding': 'gzip' } },
    ],
    ['as long as they are on the queue', { body: conversation('"'.repeat(25_000)) }],
    [
      'with what the queue has of each message',
      { body: `{"messages":[${Array(900).fill('{"content":"x"}')}]}` },
    ],
  ])('count %s', async (_, { body, headers }) => {
    const asked = Promise.withResolvers<void>();
    const end = Promise.withResolvers<void>();
    app = await startApp({
      variables: { CHAT_USER_MAX_QUEUED_BYTES: '100000' },
      reply: async () => {
        asked.resolve();
        await end.promise;
        return greeting;
      },
    });
    const first = app.chat({ body, headers: { ...headers, Authorization: basic('m') } });
    await asked.promise;
    const second = await ask(basic('m'), '/chat', conversation('x'.repeat(70_000)));
    expect(second).toMatchObject({ status: 429, body: { code: 'rate_limited' } });
    end.resolve();
    expect((await first).status).toBe(200);
  });

  it('are given back when the client leaves as soon as it has sent its body, which is then still decoded', async () => {
    app = await startApp({ variables: { CHAT_USER_MAX_QUEUED_BYTES: '100000' } });
    const body = gzipSync(Buffer.alloc(1_000_000, ' '));
    const headers = [
      `Authorization: ${basic('m')}`,
      'Content-Encoding: gzip',
      `Content-Length: ${body.length}`,
    ];
    for (let n = 0; n < 20; n += 1) {
      const socket = begin('/chat', headers, body);
      socket.end(() => socket.destroy());
      await once(socket, 'close');
      await ask(basic('m'));
    }
    await vi.waitFor(async () => expect((await ask(basic('m'))).status).toBe(200), patience);
  });

  it('are refused at once when they are too many, though the body has not ended', async () => {
    app = await startApp({ variables: { CHAT_USER_MAX_QUEUED_BYTES: '100000' } });
    hold('m', 90_000);
    await vi.waitFor(async () => expect((await ask(basic('m'))).status).toBe(429), patience);
    expect(await answerOf(hold('m', 90_000))).toMatch(/^HTTP\/1\.1 429 /);
  });

  it('of all users have a limit, which every door reports in its own way', async () => {
    app = await startApp({ variables: { CHAT_MAX_QUEUED_BYTES: '100000' } });
    hold('m', 90_000);
    await vi.waitFor(async () => expect((await ask(basic('v'))).status).toBe(500), patience);
    expect(await ask(basic('v'))).toMatchObject({
      status: 500,
      body: { code: 'overloaded', retryable: true },
    });
    expect(await ask(basic('v'), '/v1/chat/completions')).toMatchObject({
      status: 503,
      body: { error: { code: 'overloaded' } },
    });
    for (const path of ['/admin/blogs', '/admin/preview']) {
      const answer = await ask(operator, path);
      expect(answer).toMatchObject({ status: 503, body: { code: 'overloaded', status: 503 } });
      expect(answer.headers.get('content-type')).toContain('application/problem+json');
    }
    expect(await ask(operator, '/admin/chat')).toMatchObject({ status: 500, body: { code: 'overloaded' } });
  });

  describe('of strangers who sign in', () => {
    const beginSignIn = (body: Buffer, ...headers: string[]) =>
      begin('/admin/session', ['Sec-Fetch-Site: same-origin', 'Content-Length: 16000', ...headers], body);

    it('fill their room -> the oldest gives way, an operator of their address signs in, chats have theirs', async () => {
      app = await startApp({ variables: { CHAT_MAX_QUEUED_BYTES: '100000' } });
      const strangers = Array.from({ length: 1060 }, () => beginSignIn(Buffer.alloc(15_990)));
      // On a slow machine its time is over before that.
      expect(await Promise.race(strangers.map(answerOf))).toMatch(/^HTTP\/1\.1 (503|408) /);
      const signedIn = await app.ask({
        path: '/admin/session',
        body: { name: 'operator', secret: 'secret' },
        headers: { 'Sec-Fetch-Site': 'same-origin' },
      });
      expect(signedIn.status).toBe(200);
      expect((await ask(basic('v'))).status).toBe(200);
    });

    it('have a Content-Encoding -> 415', async () => {
      app = await startApp();
      const socket = beginSignIn(Buffer.alloc(0), 'Content-Encoding: gzip');
      expect(await answerOf(socket)).toMatch(/^HTTP\/1\.1 415 .*\r\nAccept-Encoding: identity\r\n/s);
    });
  });

  it.each(['/chat', '/v1/chat/completions', '/blogs', '/admin/chat', '/admin/blogs', '/admin/users'])(
    'are none without right credentials at %s: the answer comes before the body',
    async (path) => {
      app = await startApp();
      const headers = ['Authorization: Bearer wrong', 'Content-Length: 1000000'];
      expect(await answerOf(begin(path, headers))).toMatch(/^HTTP\/1\.1 401 /);
    },
  );
});
