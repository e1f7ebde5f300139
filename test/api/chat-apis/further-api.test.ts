import { request as httpRequest } from 'node:http';
import { text as readText } from 'node:stream/consumers';
import type { Response as HttpResponse } from 'express';
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest';
import type { AuthenticatedRequest } from '../../../api/access/caller.js';
import { describeApi } from '../../../api/app.js';
import type { ChatCommand, ChatReply } from '../../../api/chat/chat-command.js';
import type { ChatApi } from '../../../api/chat-apis/chat-api.js';
import { readOptions } from '../../../api/chat-apis/request-options.js';
import { serveChat } from '../../../api/chat-apis/serve.js';
import { parseConfig } from '../../../shared/config/config.js';
import { Failure } from '../../../shared/failures.js';
import { basic, startApp } from '../../support/app.js';
import { readMetrics } from '../../support/metrics.js';
import type { OpenApiDocument } from '../../support/openapi-document.js';

/** An API as a further one would be: given as the array, it gets all that the others have. */
const shouting: ChatApi = {
  name: 'shouting',
  title: 'Shout',
  about: 'In capitals.',
  description: 'The same in capitals.',
  roots: ['/loud'],
  sendFailure: (response, { code }) => void response.status(418).json({ SHOUTED: code.toUpperCase() }),
  apiKeyHeader: 'x-api-key',
  operations: [
    {
      method: 'post',
      path: '/loud/chat',
      beginsChat: true,
      body: () => ({ maxBytes: 100, maxDepth: 2 }),
      openApi: { operationId: 'shout', security: [{ chat: [] }], responses: { 200: { description: 'It' } } },
      handle: async (request, response, { config, chatService }) => {
        const { options, applied } = readOptions(request, { maxWaitS: config.CHAT_MAX_WAIT_S, api: 'loud' });
        if (request.body.text === 'no') throw new Failure('invalid_request');
        const content = { turns: [{ role: 'user' as const, content: request.body.text }] };
        const command = { ...options, provider: 'openai' as const, model: undefined };
        const form = { send: ({ text }: { text: string }) => void response.json(text.toUpperCase()) };
        await serveChat(response, { content, command, applied, form }, chatService);
      },
    },
  ],
  schemas: { Shout: { type: 'string' } },
};

const openApi = { operationId: 'name', security: [{ chat: [] }], responses: { 200: { description: 'It' } } };
const sayName = ({ user }: AuthenticatedRequest, response: HttpResponse) => void response.json(user.name);

/** An API below the root of the other, which takes no key but at one of its operations. */
const whispering: ChatApi = {
  name: 'whispering',
  title: 'Whisper',
  about: 'Names alone.',
  description: 'Names alone.',
  roots: ['/loud/not'],
  sendFailure: (response, { code }) => void response.status(418).json({ whispered: code }),
  operations: [
    { method: 'get', path: '/loud/not/keyed', apiKeyHeader: 'x-api-key', openApi, handle: sayName },
    { method: 'get', path: '/loud/not', openApi, handle: sayName },
  ],
  schemas: {},
};

let reply: ((command: ChatCommand) => Promise<ChatReply>) | undefined;
const app = await startApp({
  apis: [shouting, whispering],
  variables: { CORS_ORIGINS: 'https://app.example' },
  reply: (command) =>
    command.storeOptions?.isAsync ? { kind: 'accepted', id: 'the-id', status: 'queued' } : reply?.(command),
});
afterAll(app.close);
afterEach(() => {
  reply = undefined;
  vi.restoreAllMocks();
});

const shout = (text: string, { path = '/loud/chat', headers = {} } = {}) =>
  app.chat({ path, headers, body: { text } });

describe('a further API', () => {
  it('answers → in its own form, counted as a chat', async () => {
    expect((await shout('Hi')).body).toBe('HELLO');
    const counted = readMetrics((await app.operate({ path: '/metrics' })).text);
    expect(counted.get('quillgate_chat_requests_total{provider="openai",code="ok"}')).toBe(1);
  });

  it('is asked for a chat that is stored → 202 with its address', async () => {
    const response = await shout('Hi', { headers: { Prefer: 'respond-async' } });
    expect([response.status, response.headers.get('location')]).toEqual([202, '/chat/the-id']);
  });

  it.each([
    ['throws', 'no', {}, 'INVALID_REQUEST'],
    ['gets no credentials', 'Hi', { Authorization: '' }, 'UNAUTHORIZED'],
    ['gets a body over its own limit', 'x'.repeat(200), {}, 'PAYLOAD_TOO_LARGE'],
  ])('%s → the failure is sent as its own', async (_given, text, headers, code) => {
    const { status, body } = await shout(text, { headers });
    expect([status, body]).toEqual([418, { SHOUTED: code }]);
  });

  it('is asked with another method, or at another address below its root → its own failures', async () => {
    const wrong = await app.ask({ path: '/loud/chat' });
    expect([wrong.status, wrong.headers.get('allow')]).toEqual([418, 'POST']);
    expect((await app.ask({ path: '/loud' })).body).toEqual({ SHOUTED: 'NOT_FOUND' });
  });

  it('is found by operators below /admin → with problems', async () => {
    const headers = { Authorization: 'Bearer operator' };
    expect((await shout('Hi', { path: '/admin/loud/chat', headers })).body).toBe('HELLO');
    const refused = await shout('no', { path: '/admin/loud/chat', headers });
    expect(refused.headers.get('content-type')).toMatch(/^application\/problem\+json/);
  });

  it('is asked by a page of another origin → the preflight allows it', async () => {
    const headers = {
      Origin: 'https://app.example',
      'Access-Control-Request-Method': 'POST',
      'Access-Control-Request-Headers': 'content-type,x-api-key',
    };
    const { status, headers: allowed } = await app.ask({
      ...{ method: 'OPTIONS', path: '/loud/chat', headers },
    });
    const permissions = ['origin', 'headers'].map((name) => allowed.get(`access-control-allow-${name}`));
    expect([status, ...permissions]).toEqual([204, 'https://app.example', 'content-type,x-api-key']);
  });

  it('has its place on the front page and in the document', async () => {
    const { body: front } = await app.ask({ headers: { Accept: 'application/json' } });
    expect(front).toMatchObject({ links: { shouting: '/loud/chat' } });
    const document = describeApi(parseConfig({}, 'config'), [shouting]) as OpenApiDocument;
    expect(document.paths['/loud/chat']?.post).toMatchObject({ operationId: 'shout', tags: ['shouting'] });
    expect(document.components.schemas).toHaveProperty('Shout');
  });
});

describe('a header for keys', () => {
  /** Sends each value of a header as a line of its own. */
  const send = async (path: string, headers: Record<string, string | string[]>) => {
    const method = path === '/loud/chat' || path === '/admin/loud/chat' ? 'POST' : 'GET';
    const sent = httpRequest(app.url + path, {
      method,
      agent: false,
      headers: { ...headers, 'Content-Type': 'application/json' },
    });
    sent.end(method === 'POST' ? '{"text":"Hi"}' : '');
    const { promise, resolve, reject } = Promise.withResolvers<Parameters<typeof readText>[0]>();
    sent.on('response', resolve).on('error', reject);
    return JSON.parse(await readText(await promise));
  };
  const Basic = basic('user');
  const shouted = { SHOUTED: 'UNAUTHORIZED' };
  const whispered = { whispered: 'unauthorized' };

  it.each<[string, string, Record<string, string | string[]>, unknown]>([
    ['has a token', '/loud/chat', { 'X-Api-Key': 'counted' }, 'HELLO'],
    [
      'has it beside Authorization, which counts',
      '/loud/chat',
      { Authorization: Basic, 'X-Api-Key': 'x' },
      'HELLO',
    ],
    [
      'has it beside a wrong one',
      '/loud/chat',
      { Authorization: 'Bearer x', 'X-Api-Key': 'counted' },
      shouted,
    ],
    [
      'has a token of another scope',
      '/loud/chat',
      { 'X-Api-Key': 'writer' },
      { SHOUTED: 'INSUFFICIENT_SCOPE' },
    ],
    ['has a token that is unknown', '/loud/chat', { 'X-Api-Key': 'x' }, shouted],
    ['is empty', '/loud/chat', { 'X-Api-Key': '' }, shouted],
    ['comes twice', '/loud/chat', { 'X-Api-Key': ['counted', 'counted'] }, shouted],
    ['has a scheme', '/loud/chat', { 'X-Api-Key': 'Bearer counted' }, shouted],
    ['has a name and a secret', '/loud/chat', { 'X-Api-Key': Basic }, shouted],
    ['is sent to an API without one', '/loud/not', { 'X-Api-Key': 'counted' }, whispered],
    ['is sent to its operation that has one', '/loud/not/keyed', { 'X-Api-Key': 'counted' }, 'Rita'],
    ['is sent to the operators', '/admin/loud/chat', { 'X-Api-Key': 'operator' }, { code: 'unauthorized' }],
  ])('%s → at %s with %j: %j', async (_given, path, headers, expected) => {
    const answer = await send(path, headers);
    if (typeof expected === 'string') expect(answer).toBe(expected);
    else expect(answer).toMatchObject(expected as object);
  });

  it('has a token that is revoked while its chat runs → the chat ends with that, and no sooner', async () => {
    const { directory } = app.authentication;
    const loaded = Promise.withResolvers<() => void>();
    vi.spyOn(directory, 'onLoad').mockImplementation((listener) => {
      loaded.resolve(listener);
      return () => undefined;
    });
    const running = Promise.withResolvers<AbortSignal>();
    reply = ({ signal }) => {
      running.resolve(signal);
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    };
    const answer = send('/loud/chat', { 'X-Api-Key': 'counted' });
    const [load, signal] = await Promise.all([loaded.promise, running.promise]);
    load();
    expect(signal.aborted).toBe(false);
    vi.spyOn(directory, 'checkToken').mockReturnValue(undefined);
    load();
    expect(await answer).toEqual(shouted);
  });
});
