import { afterAll, describe, expect, it } from 'vitest';
import { startApp } from '../support/app.js';
import { createBlogClient } from '../support/client.js';
import { openTestDatabase } from '../support/database.js';

const chatId = crypto.randomUUID();
const app = await startApp({
  opened: await openTestDatabase(),
  variables: { CHAT_BASE_URL: 'https://x.example/talk', BLOG_BASE_URL: 'https://x.example/b' },
  reply: ({ storeOptions, stream }) => {
    stream?.sink.begin();
    if (!storeOptions?.isAsync) return undefined;
    return { kind: 'accepted', id: chatId, status: 'queued' };
  },
});
afterAll(app.close);
const session = await app.signIn();

const chat = (headers: Record<string, string>) =>
  app.ask({
    path: '/admin/chat',
    headers: { 'X-LLM': 'openai', ...headers },
    body: { messages: [{ content: 'Hello' }] },
  });
const send = createBlogClient(`${app.url}/admin/blogs`, session);
const blog = (method: string, path: string, body?: object, headers: Record<string, string> = {}) =>
  send({ method, path, body, headers });

describe('a chat below /admin', () => {
  const complete = (more: object = {}) => {
    const body = { model: 'openai/m', messages: [{ role: 'user', content: 'Hello' }], ...more };
    return app.ask({ path: '/admin/v1/chat/completions', headers: session, body });
  };

  it.each([
    ['a session', session, 'ann'],
    ['a token', { Authorization: 'Bearer operator' }, 'operator'],
  ])('is asked with %s -> it is that of its owner', async (_, headers: Record<string, string>, name) => {
    expect(await chat(headers)).toMatchObject({ status: 200, body: { response: 'Hello' } });
    expect(app.commands.at(-1)).toMatchObject({ user: `id of ${name}` });
  });

  it('is asked for later, or as a stream -> it is found below /admin, or streamed', async () => {
    const accepted = await chat({ ...session, Prefer: 'respond-async' });
    expect([accepted.status, accepted.headers.get('location')]).toEqual([202, `/admin/chat/${chatId}`]);
    const streamed = await chat({ ...session, Accept: 'text/event-stream' });
    expect(streamed.headers.get('content-type')).toMatch(/^text\/event-stream/);
    expect(streamed.text).toContain('event: done\n');
  });

  it('is one of OpenAI’s -> it is answered and streamed as there', async () => {
    expect((await complete()).body).toMatchObject({ choices: [{ message: { content: 'Hello' } }] });
    expect(app.commands.at(-1)).toMatchObject({ user: 'id of ann', provider: 'openai', model: 'm' });
    expect((await complete({ stream: true })).text).toContain('data: [DONE]\n');
  });

  it('is wrong -> 400 as a problem, at OpenAI’s address too', async () => {
    expect((await chat({ ...session, 'X-LLM': 'nobody' })).body.code).toBe('unknown_provider');
    const response = await complete({ n: 2 });
    expect(response.headers.get('content-type')).toMatch(/^application\/problem\+json/);
    expect(response.body).toMatchObject({ code: 'invalid_request', errors: [{ pointer: '/n' }] });
  });
});

describe('posts below /admin', () => {
  it('are written and read with a session, drafts among them -> as those of its owner', async () => {
    const draft = { content: 'My *draft*.', title: 'Draft', status: 'draft' };
    const created = await blog('POST', '', draft);
    expect(created.status).toBe(201);
    expect(created.post).toMatchObject({ author: 'ann', status: 'draft' });
    const { id } = created.post;
    expect(created.headers.get('location')).toBe(`/admin/blogs/${id}`);
    expect((await app.ask({ path: `/b/blogs/${id}` })).status).toBe(404);
    const read = await blog('GET', `/${id}`);
    expect(read).toMatchObject({ status: 200, post: { id } });
    // No shared cache may store it, although the request has no Authorization.
    expect(read.headers.get('cache-control')).toBe('private, no-cache');
    expect((await blog('GET', '')).headers.get('cache-control')).toBe('private, no-cache');
    expect((await app.operate({ path: '/admin/blogs' })).body).toEqual([created.post]);

    const ETag = created.headers.get('etag') ?? '';
    const merge = { 'Content-Type': 'application/merge-patch+json', 'If-Match': ETag };
    const published = await blog('PATCH', `/${id}`, { status: 'published' }, merge);
    expect(published).toMatchObject({ status: 200, post: { version: 2 } });
    const late = await blog('PUT', `/${id}`, draft, { 'If-Match': ETag });
    expect(late).toMatchObject({ status: 412, post: { code: 'precondition_failed' } });
    expect((await blog('DELETE', `/${id}`)).status).toBe(204);
  });

  it('are more than a page -> the next one is below /admin', async () => {
    for (const content of ['one', 'two']) await blog('POST', '', { content });
    const page = await blog('GET', '?limit=1');
    expect(page.headers.get('link')).toMatch(/^<\/admin\/blogs\?limit=1&cursor=/);
    const publicPage = await app.ask({ path: '/b/blogs?limit=1' });
    expect(publicPage.headers.get('link')).toMatch(/^<\/b\/blogs\?/);
    expect(publicPage.headers.get('cache-control')).toBe('public, no-cache');
  });

  it.each(['/admin/feed.xml', '/admin/v1/models', '/admin/admin/pools', '/v1/admin/pools', '/admin/'])(
    'are not all that is elsewhere -> there is nothing at %s',
    async (path) => {
      expect((await app.ask({ path, headers: session })).status).toBe(404);
    },
  );
});
