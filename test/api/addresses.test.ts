import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Post } from '../../shared/contract.js';
import { directoryOf } from '../support/access-directory.js';
import { type ChatApp, startChatApp } from '../support/chat-app.js';
import { openTestDatabase } from '../support/database.js';
import { userNamed } from '../support/identities.js';
import { MemorySessions } from '../support/memory-sessions.js';

const { database, stop } = await openTestDatabase();
const sessions = directoryOf({ sessions: new MemorySessions() });
let app: ChatApp;
let session: Record<string, string>;
beforeAll(async () => {
  app = await startChatApp({
    sessions,
    postsDatabase: database,
    variables: {
      CORS_ORIGINS: '*',
      CHAT_BASE_URL: 'https://x.example/talk',
      BLOG_BASE_URL: 'https://x.example/b',
    },
    reply: ({ storeOptions, stream }) => {
      stream?.sink.begin();
      if (!storeOptions?.isAsync) return undefined;
      return { kind: 'accepted', id: chatId, status: 'queued' };
    },
  });
  const { key } = await sessions.openSession({ user: userNamed('ann'), secretHash: undefined });
  session = { Cookie: `quillgate_session=${key}`, 'Sec-Fetch-Site': 'same-origin' };
});
afterAll(async () => {
  await app.close();
  await stop();
});

const chatId = crypto.randomUUID();
const json = { 'Content-Type': 'application/json' };
const token = { Authorization: 'Bearer operator' };
const chat = (headers: Record<string, string>, path = '/admin/chat') =>
  fetch(`${app.url}${path}`, {
    method: 'POST',
    headers: { ...json, 'X-LLM': 'openai', ...headers },
    body: '{"messages":[{"content":"Hello"}]}',
  });
const blog = async (
  method: string,
  path: string,
  headers: Record<string, string> = session,
  body?: object,
) => {
  const response = await fetch(`${app.url}/admin/blogs${path}`, {
    method,
    headers: { ...(body && json), ...headers },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, post: (text && JSON.parse(text)) as Post };
};

describe('/admin/chat', () => {
  it('is chat for operators, as the users they are', async () => {
    for (const [headers, name] of [
      [session, 'ann'],
      [token, 'operator'],
    ] as const) {
      const response = await chat(headers);
      expect([response.status, await response.json()]).toEqual([200, { response: 'Hello' }]);
      expect(app.commands.at(-1)).toMatchObject({ user: `id of ${name}` });
    }
  });

  it.each([
    ['Basic', { Authorization: `Basic ${btoa('user:secret')}` }, 401],
    ['nothing', {}, 401],
    ['a token without the scope', { Authorization: 'Bearer reader' }, 403],
  ])('takes no %s', async (_what, headers: Record<string, string>, status) => {
    expect((await chat(headers)).status).toBe(status);
  });

  it('takes no session elsewhere, and none from other origins', async () => {
    for (const path of ['/talk/chat', '/v1/chat']) expect((await chat(session, path)).status).toBe(401);
    const foreign = await chat({ ...session, 'Sec-Fetch-Site': 'cross-site' });
    expect(await foreign.json()).toMatchObject({ status: 403, code: 'cross_origin' });
  });

  it('is not opened to the pages of other origins', async () => {
    const Origin = 'https://app.example.org';
    const preflight = { Origin, 'Access-Control-Request-Method': 'POST' };
    for (const path of ['/admin/chat', '/admin/blogs']) {
      const response = await fetch(`${app.url}${path}`, { method: 'OPTIONS', headers: preflight });
      expect(response.headers.get('access-control-allow-origin')).toBeNull();
      const asked = await fetch(`${app.url}${path}`, { headers: { ...token, Origin } });
      expect(asked.headers.get('access-control-allow-origin')).toBeNull();
    }
  });

  it('refuses what chat refuses, and knows the same methods', async () => {
    expect(await (await chat({ ...session, 'X-LLM': 'nobody' })).json()).toMatchObject({
      code: 'unknown_provider',
    });
    const other = await fetch(`${app.url}/admin/chat`, { headers: session });
    expect([other.status, other.headers.get('allow')]).toEqual([405, 'POST']);
    const missing = await fetch(`${app.url}/admin/chat/${crypto.randomUUID()}`, { headers: session });
    expect(missing.status).not.toBe(401);
    expect((await fetch(`${app.url}/admin/chat/${crypto.randomUUID()}`)).status).toBe(401);
  });

  it('leads back to a chat below /admin', async () => {
    const response = await chat({ ...session, Prefer: 'respond-async' });
    expect(response.status).toBe(202);
    expect(response.headers.get('location')).toBe(`/admin/chat/${chatId}`);
  });

  it('streams', async () => {
    const response = await chat({ ...session, Accept: 'text/event-stream' });
    expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/);
    expect(await response.text()).toContain('event: done\n');
  });
});

describe('/admin/v1/chat/completions', () => {
  const complete = (headers: Record<string, string>, more: object = {}) =>
    fetch(`${app.url}/admin/v1/chat/completions`, {
      ...{ method: 'POST', headers: { ...json, ...headers } },
      body: JSON.stringify({ model: 'openai/m', messages: [{ role: 'user', content: 'Hello' }], ...more }),
    });

  it('is OpenAI’s API for operators, as the users they are', async () => {
    const response = await complete(session);
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({ choices: [{ message: { content: 'Hello' } }] });
    expect(app.commands.at(-1)).toMatchObject({ user: 'id of ann', provider: 'openai', model: 'm' });
    const streamed = await (await complete(session, { stream: true })).text();
    expect(streamed).toContain('data: [DONE]\n');
  });

  it.each([
    ['Basic', { Authorization: `Basic ${btoa('user:secret')}` }, 401],
    ['nothing', {}, 401],
    ['a token without the scope', { Authorization: 'Bearer reader' }, 403],
  ])('takes no %s', async (_what, headers: Record<string, string>, status) => {
    expect((await complete(headers)).status).toBe(status);
  });

  it('describes its failures as the other addresses of operators do', async () => {
    const response = await complete(session, { n: 2 });
    expect(response.headers.get('content-type')).toMatch(/^application\/problem\+json/);
    expect(await response.json()).toMatchObject({ code: 'invalid_request', errors: [{ pointer: '/n' }] });
    const other = await fetch(`${app.url}/admin/v1/chat/completions`, { headers: session });
    expect([other.status, other.headers.get('allow')]).toEqual([405, 'POST']);
  });
});

describe('/admin/blogs', () => {
  it('has posts written and read, drafts among them, by who has signed in', async () => {
    const draft = { content: 'My *draft*.', title: 'Draft', status: 'draft' };
    const created = await blog('POST', '', session, draft);
    expect(created.status).toBe(201);
    expect(created.post).toMatchObject({ author: 'ann', status: 'draft' });
    const { id } = created.post;
    expect(created.headers.get('location')).toBe(`/admin/blogs/${id}`);
    expect((await fetch(`${app.url}/b/blogs/${id}`)).status).toBe(404);
    const read = await blog('GET', `/${id}`);
    expect(read).toMatchObject({ status: 200, post: { id } });
    // No shared cache may store it, although the request has no Authorization.
    expect(read.headers.get('cache-control')).toBe('private, no-cache');
    expect((await blog('GET', '')).headers.get('cache-control')).toBe('private, no-cache');
    expect((await blog('GET', '', token)).post).toEqual([created.post]);

    const ETag = created.headers.get('etag') ?? '';
    const merge = { ...session, 'Content-Type': 'application/merge-patch+json' };
    const published = await blog('PATCH', `/${id}`, { ...merge, 'If-Match': ETag }, { status: 'published' });
    expect(published).toMatchObject({ status: 200, post: { version: 2 } });
    const late = await blog('PUT', `/${id}`, { ...session, 'If-Match': ETag }, draft);
    expect(late).toMatchObject({ status: 412, post: { code: 'precondition_failed' } });
    expect((await blog('DELETE', `/${id}`)).status).toBe(204);
  });

  it('pages below /admin', async () => {
    for (const content of ['one', 'two']) await blog('POST', '', session, { content });
    const page = await blog('GET', '?limit=1');
    expect(page.headers.get('link')).toMatch(/^<\/admin\/blogs\?limit=1&cursor=/);
    const publicPage = await fetch(`${app.url}/b/blogs?limit=1`);
    expect(publicPage.headers.get('link')).toMatch(/^<\/b\/blogs\?/);
    expect(publicPage.headers.get('cache-control')).toBe('public, no-cache');
  });

  it('is closed to readers without credentials, and to changes from elsewhere', async () => {
    expect((await blog('GET', '', {})).status).toBe(401);
    const post = { content: 'x' };
    expect((await blog('POST', '', { Cookie: session.Cookie ?? '' }, post)).status).toBe(403);
    const response = await fetch(`${app.url}/b/blogs`, {
      method: 'POST',
      headers: { ...json, ...session },
      body: JSON.stringify(post),
    });
    expect(response.status).toBe(401);
  });

  it.each(['/admin/feed.xml', '/admin/v1/models', '/admin/admin/pools', '/admin/blogs/', '/Admin/blogs'])(
    'has nothing at %s',
    async (path) => {
      expect((await fetch(`${app.url}${path}`, { headers: session })).status).toBe(404);
    },
  );
});
