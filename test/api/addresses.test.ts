import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Post } from '../../shared/contracts/contract.js';
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
const chat = (headers: Record<string, string>) =>
  fetch(`${app.url}/admin/chat`, {
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

describe('a chat below /admin', () => {
  const complete = async (more: object = {}) => {
    const asked = { model: 'openai/m', messages: [{ role: 'user', content: 'Hello' }], ...more };
    const init = { method: 'POST', headers: { ...json, ...session }, body: JSON.stringify(asked) };
    return fetch(`${app.url}/admin/v1/chat/completions`, init);
  };

  it.each([
    ['a session', () => session, 'ann'],
    ['a token', () => token, 'operator'],
  ])('is asked with %s -> it is that of its owner', async (_, headersOf, name) => {
    const response = await chat(headersOf());
    expect([response.status, await response.json()]).toEqual([200, { response: 'Hello' }]);
    expect(app.commands.at(-1)).toMatchObject({ user: `id of ${name}` });
  });

  it('is asked for later, or as a stream -> it is found below /admin, or streamed', async () => {
    const accepted = await chat({ ...session, Prefer: 'respond-async' });
    expect([accepted.status, accepted.headers.get('location')]).toEqual([202, `/admin/chat/${chatId}`]);
    const streamed = await chat({ ...session, Accept: 'text/event-stream' });
    expect(streamed.headers.get('content-type')).toMatch(/^text\/event-stream/);
    expect(await streamed.text()).toContain('event: done\n');
  });

  it('is one of OpenAI’s -> it is answered and streamed as there', async () => {
    const response = await complete();
    expect(await response.json()).toMatchObject({ choices: [{ message: { content: 'Hello' } }] });
    expect(app.commands.at(-1)).toMatchObject({ user: 'id of ann', provider: 'openai', model: 'm' });
    expect(await (await complete({ stream: true })).text()).toContain('data: [DONE]\n');
  });

  it('is wrong -> 400 as a problem, at OpenAI’s address too', async () => {
    const unknown = await chat({ ...session, 'X-LLM': 'nobody' });
    expect(await unknown.json()).toMatchObject({ code: 'unknown_provider' });
    const response = await complete({ n: 2 });
    expect(response.headers.get('content-type')).toMatch(/^application\/problem\+json/);
    expect(await response.json()).toMatchObject({ code: 'invalid_request', errors: [{ pointer: '/n' }] });
  });
});

describe('posts below /admin', () => {
  it('are written and read with a session, drafts among them -> as those of its owner', async () => {
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

  it('are more than a page -> the next one is below /admin', async () => {
    for (const content of ['one', 'two']) await blog('POST', '', session, { content });
    const page = await blog('GET', '?limit=1');
    expect(page.headers.get('link')).toMatch(/^<\/admin\/blogs\?limit=1&cursor=/);
    const publicPage = await fetch(`${app.url}/b/blogs?limit=1`);
    expect(publicPage.headers.get('link')).toMatch(/^<\/b\/blogs\?/);
    expect(publicPage.headers.get('cache-control')).toBe('public, no-cache');
  });

  it.each(['/admin/feed.xml', '/admin/v1/models', '/admin/admin/pools', '/v1/admin/pools', '/admin/'])(
    'are not all that is elsewhere -> there is nothing at %s',
    async (path) => {
      expect((await fetch(`${app.url}${path}`, { headers: session })).status).toBe(404);
    },
  );
});
