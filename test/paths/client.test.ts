import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import createClient, { type Client } from 'openapi-fetch';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { providerIds } from '../../shared/contract.js';
import type { paths } from '../generated/api.js';
import { authorization, blogToken, type Deployment, startDeployment } from '../support/deployment.js';

let deployment: Deployment;
/** Generated clients: the compiler checks every call below against the document. */
let chat: Client<paths>;
let writer: Client<paths>;
let reader: Client<paths>;
beforeAll(async () => {
  deployment = await startDeployment({});
  const baseUrl = deployment.url;
  chat = createClient<paths>({ baseUrl, headers: { Authorization: authorization } });
  writer = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${blogToken}` } });
  reader = createClient<paths>({ baseUrl });
});
afterAll(() => deployment.stop());

/** The post of an answer that has one. */
function given<T>({ data, error }: { data?: T; error?: unknown }): T {
  expect(error).toBeUndefined();
  return data as T;
}
const create = async (content: string) => given(await writer.POST('/blogs', { body: { content } }));

describe('a generated client', () => {
  it.each(providerIds)('chats with %s', async (provider) => {
    const { data, response } = await chat.POST('/chat', {
      params: { header: { 'X-LLM': provider } },
      body: { messages: [{ role: 'system', content: 'Be brief.' }, { content: 'Hello' }] },
    });
    expect(data).toMatchObject({ response: expect.stringContaining('Hello') });
    expect(response.headers.get('X-LLM-Provider')).toBe(provider);
  });

  it('gets a problem it can read from chat', async () => {
    const { data, error } = await chat.POST('/chat', {
      params: { header: { 'X-LLM': 'openai' } },
      body: { messages: [] },
    });
    expect(data).toBeUndefined();
    expect(error?.code).toBe('empty_conversation');
    const header = { 'X-LLM': 'openai' } as const;
    const refused = await reader.POST('/chat', { params: { header }, body: { messages: [] } });
    expect(refused.error?.code).toBe('unauthorized');
  });

  it('creates and gets a post', async () => {
    const body = { content: '# Hi', title: 'Hi', tags: ['a'], status: 'published' as const, slug: null };
    const params = { header: { 'Idempotency-Key': 'client-1', Prefer: 'handling=strict' } };
    const { data: post, response } = await writer.POST('/blogs', { params, body });
    expect(response.status).toBe(201);
    expect(post).toMatchObject({ content: '# Hi', title: 'Hi', tags: ['a'], version: 1 });
    const path = { id: post?.id ?? '' };
    expect(given(await reader.GET('/blogs/{id}', { params: { path } }))).toEqual(post);
    const header = { 'If-None-Match': response.headers.get('ETag') ?? '' };
    const again = await reader.GET('/blogs/{id}', { params: { path, header } });
    expect(again.response.status).toBe(304);
    const accept = { Accept: 'text/markdown' };
    const markdown = await reader.GET('/blogs/{id}', { params: { path }, headers: accept, parseAs: 'text' });
    expect(markdown.data).toBe('# Hi');
  });

  it('lists posts, page by page', async () => {
    const written = [await create('one'), await create('two')].reverse();
    const query = { limit: 1, envelope: true, author: 'tester', q: 'one or two' };
    const first = given(await reader.GET('/blogs', { params: { query } }));
    if (Array.isArray(first)) throw new TypeError('no envelope');
    expect(first.data).toEqual(written.slice(0, 1));
    const cursor = first.next ?? '';
    const second = given(await reader.GET('/blogs', { params: { query: { ...query, cursor } } }));
    expect(second).toEqual({ data: written.slice(1), next: null });
    expect(given(await reader.GET('/blogs', { params: { query: { limit: 2 } } }))).toEqual(written);
    const refused = await reader.GET('/blogs', { params: { query: { limit: 0 } } });
    expect(refused.error?.errors).toEqual([{ pointer: 'limit', detail: expect.any(String) }]);
  });

  it('replaces, patches and deletes a post', async () => {
    const { id, content } = await create('first');
    const path = { id };
    const put = await writer.PUT('/blogs/{id}', { params: { path }, body: { content, title: 'Second' } });
    expect(given(put).title).toBe('Second');
    const header = { 'If-Match': put.response.headers.get('ETag') ?? '' };
    const patch = { params: { path, header }, body: { title: null } };
    expect(given(await writer.PATCH('/blogs/{id}', patch))).toMatchObject({
      content,
      title: null,
      version: 3,
    });
    expect((await writer.PATCH('/blogs/{id}', patch)).error?.code).toBe('precondition_failed');
    const merge = { 'Content-Type': 'application/merge-patch+json' };
    const merged = await writer.PATCH('/blogs/{id}', {
      params: { path },
      body: { tags: ['b'] },
      headers: merge,
    });
    expect(given(merged).tags).toEqual(['b']);
    expect((await writer.DELETE('/blogs/{id}', { params: { path } })).response.status).toBe(204);
    const gone = await reader.GET('/blogs/{id}', { params: { path } });
    expect(gone.error?.code).toBe('not_found');
    const unknown = await reader.POST('/blogs', { body: { content } });
    expect(unknown.error?.code).toBe('unauthorized');
  });
});

it('is compiled against what this server describes', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'quillgate-test-'));
  const types = join(dir, 'api.ts');
  const address = `${deployment.url}/openapi.json`;
  await promisify(execFile)(process.execPath, ['dev/client-types.mjs', address, types]);
  expect(readFileSync('test/generated/api.ts', 'utf8')).toBe(readFileSync(types, 'utf8'));
  rmSync(dir, { recursive: true });
});
