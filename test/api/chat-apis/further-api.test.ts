import { afterAll, describe, expect, it } from 'vitest';
import { describeApi } from '../../../api/app.js';
import type { ChatApi } from '../../../api/chat-apis/chat-api.js';
import { readOptions } from '../../../api/chat-apis/request-options.js';
import { serveChat } from '../../../api/chat-apis/serve.js';
import { parseConfig } from '../../../shared/config/config.js';
import { Failure } from '../../../shared/failures.js';
import { startApp } from '../../support/app.js';
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

const app = await startApp({
  apis: [shouting],
  variables: { CORS_ORIGINS: 'https://app.example' },
  reply: ({ storeOptions }) =>
    storeOptions?.isAsync ? { kind: 'accepted', id: 'the-id', status: 'queued' } : undefined,
});
afterAll(app.close);

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
    const headers = { Origin: 'https://app.example', 'Access-Control-Request-Method': 'POST' };
    const { status, headers: allowed } = await app.ask({
      ...{ method: 'OPTIONS', path: '/loud/chat', headers },
    });
    expect([status, allowed.get('access-control-allow-origin')]).toEqual([204, 'https://app.example']);
  });

  it('has its place on the front page and in the document', async () => {
    const { body: front } = await app.ask({ headers: { Accept: 'application/json' } });
    expect(front).toMatchObject({ links: { shouting: '/loud/chat' } });
    const document = describeApi(parseConfig({}, 'config'), [shouting]) as OpenApiDocument;
    expect(document.paths['/loud/chat']?.post).toMatchObject({ operationId: 'shout', tags: ['shouting'] });
    expect(document.components.schemas).toHaveProperty('Shout');
  });
});
