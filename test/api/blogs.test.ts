import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Post } from '../../shared/contracts/contract.js';
import { startApp } from '../support/app.js';
import { createBlogClient, type Sent } from '../support/client.js';
import { openTestDatabase } from '../support/database.js';

const variables = { BLOG_BASE_URL: 'https://blog.example/base', BLOG_READS_PER_SECOND: '0' };
const app = await startApp({ variables, opened: await openTestDatabase() });
afterAll(app.close);

const uuidV7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const unknownId = '01900000-0000-7000-8000-000000000000';

const ask = createBlogClient(`${app.url}/base/blogs`);
const call = (sent: Sent) => ask({ token: 'writer', ...sent });
const create = async (body: object) =>
  (await call({ method: 'POST', body: { content: 'Text', ...body } })).post;
const write = async (method: string, { id }: Post, body: object, headers: Record<string, string> = {}) =>
  call({ method, path: `/${id}`, body, headers });
const etagNow = async ({ id }: Post) => (await call({ path: `/${id}` })).headers.get('etag') ?? '';

describe('POST /blogs', () => {
  it.each([
    ['absent', {}],
    ['null', { title: null, author: null, tags: null, slug: null, status: null }],
  ])('has nothing but a content, the rest being %s -> a post with every default', async (_, given) => {
    const { status, headers, post } = await call({ method: 'POST', body: { content: 'Text', ...given } });
    expect(status).toBe(201);
    expect(post).toEqual({
      id: expect.stringMatching(uuidV7),
      title: null,
      content: 'Text',
      author: 'Wanda',
      tags: [],
      slug: expect.stringMatching(/^post-[0-9a-f]{8}$/),
      status: 'published',
      publishedAt: post.createdAt,
      createdAt: expect.stringMatching(time),
      updatedAt: post.createdAt,
      version: 1,
    });
    expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(headers.get('location')).toBe(`/base/blogs/${post.id}`);
    expect(headers.get('etag')).toMatch(/^"1-[0-9a-z]+"$/);
    expect(headers.get('last-modified')).toBe(new Date(post.updatedAt).toUTCString());
    expect(headers.get('x-ignored-fields')).toBeNull();
    expect(headers.get('idempotency-replayed')).toBeNull();
  });

  it('has any texts -> they are kept byte for byte', async () => {
    const body = {
      content: `\r\n# שלום 🎉\t'; DROP TABLE posts; --\u0001<script>\u202e e\u0301 \u00e9 $1 \\ `,
      title: '🎉'.repeat(300),
      author: `O'Hara "R" <x@y>`,
      tags: ['ä b', '{"a"}', "';--", '\\'],
      slug: `given-${Date.now()}`,
      status: 'draft',
    };
    const { post } = await call({ method: 'POST', body });
    expect(post).toMatchObject(body);
    expect(post.publishedAt).toBeNull();
    expect((await call({ path: `/${post.id}` })).post).toEqual(post);
    expect((await call({ path: `/${post.id}`, headers: { Accept: 'text/markdown' } })).text).toBe(
      body.content,
    );
  });

  it('has a slug that is taken -> 409', async () => {
    const { slug } = await create({ title: 'The same' });
    const { status, problem } = await call({ method: 'POST', body: { content: 'Text', slug } });
    expect([slug, status, problem.code]).toEqual(['the-same', 409, 'slug_taken']);
  });

  it('has unknown fields -> they are named, or refused under handling=strict', async () => {
    const body = `{"content":"Text","__proto__":{"title":"evil"},"id":"${unknownId}"}`;
    const lenient = await call({ method: 'POST', body });
    expect([lenient.status, lenient.headers.get('x-ignored-fields')]).toEqual([201, '__proto__, id']);
    expect(lenient.post).toMatchObject({ title: null, version: 1 });
    expect(lenient.post.id).not.toBe(unknownId);
    const strict = await call({ method: 'POST', body, headers: { Prefer: 'handling=strict' } });
    expect([strict.status, strict.headers.get('preference-applied')]).toEqual([400, 'handling=strict']);
  });
});

describe('Idempotency-Key', () => {
  const post = (key: string, body: object, token = 'writer') =>
    call({ method: 'POST', token, body, headers: { 'Idempotency-Key': key } });

  it('is sent again -> the first post, as it is now', async () => {
    const key = randomUUID();
    const first = await post(key, { content: 'Once', slug: `once-${key}` });
    await write('PATCH', first.post, { title: 'Changed' });
    const second = await post(key, { slug: `once-${key}`, content: 'Once', title: null, unknown: 1 });
    expect(second.status).toBe(201);
    expect(second.headers.get('idempotency-replayed')).toBe('true');
    expect(second.headers.get('location')).toBe(first.headers.get('location'));
    expect(second.post).toMatchObject({ id: first.post.id, title: 'Changed', version: 2 });
    expect(second.headers.get('etag')).toBe(await etagNow(first.post));
  });

  it('is sent with another token -> is that of its owner', async () => {
    const key = randomUUID();
    const first = await post(key, { content: 'One' });
    const other = await post(key, { content: 'Other' }, 'other');
    expect(other).toMatchObject({ status: 201, post: { author: 'Otto' } });
    expect(other.post.id).not.toBe(first.post.id);
    expect((await post(key, { content: 'Other' })).problem.code).toBe('idempotency_key_reused');
  });

  it('is malformed -> 400', async () => {
    const { status, problem } = await post('a b', { content: 'Text' });
    expect(status).toBe(400);
    expect(problem.errors).toMatchObject([{ pointer: 'Idempotency-Key' }]);
  });
});

describe('GET /blogs', () => {
  const tag = 'listed';
  const made: Post[] = [];
  beforeAll(async () => {
    for (const n of [1, 2, 3, 4, 5]) {
      const author = n % 2 ? 'Odd' : 'Even';
      made.unshift(await create({ title: `Number ${n}`, content: `Walrus ${n}`, tags: [tag], author }));
    }
  });
  const ids = (posts: Post[]) => posts.map(({ id }) => id);

  it('is asked by anybody -> an array, newest first', async () => {
    const { status, headers, posts } = await ask({ path: `?tag=${tag}` });
    expect(status).toBe(200);
    expect(posts).toEqual(made);
    expect(headers.get('link')).toBeNull();
    expect(headers.get('cache-control')).toBe('public, no-cache');
    expect(headers.get('vary')).toBe('Accept, Authorization');
    expect((await call({ path: `?tag=${tag}` })).headers.get('cache-control')).toBe('private, no-cache');
  });

  it('has several pages -> Link leads through them without gap or repetition', async () => {
    const seen: Post[] = [];
    let path: string | undefined = `/base/blogs?tag=${tag}&limit=2&unknown=1`;
    for (let page = 0; path !== undefined && page < 5; page++) {
      const { headers, posts } = await ask({ path: path.replace('/base/blogs', '') });
      expect(posts.length).toBeLessThanOrEqual(2);
      seen.push(...posts);
      const link = headers.get('link');
      path = link === null ? undefined : /^<(.+)>; rel="next"$/.exec(link)?.[1];
      if (path) expect(path).toMatch(/^\/base\/blogs\?tag=listed&limit=2&cursor=[\w-]+$/);
    }
    expect(ids(seen)).toEqual(ids(made));
  });

  it('is asked for drafts -> they are listed to who may write, page by page, and to nobody else', async () => {
    const [first, second] = [
      await create({ status: 'draft', tags: ['half'] }),
      await create({ status: 'draft', tags: ['half'] }),
    ];
    const published = await create({ tags: ['half'] });
    expect((await call({ path: '?tag=half&status=draft' })).posts).toEqual([second, first]);
    expect((await call({ path: '?tag=half&status=published' })).posts).toEqual([published]);
    const { headers } = await call({ path: '?tag=half&status=draft&limit=1' });
    const next = /<\/base\/blogs([^>]*)>; rel="next"/.exec(headers.get('link') ?? '')?.[1] ?? '';
    expect(next).toContain('status=draft');
    expect((await call({ path: next })).posts).toEqual([first]);
    for (const token of [undefined, 'reader'] as const) {
      const { status, posts } = await ask({ path: '?tag=half&status=draft', token });
      expect([status, posts]).toEqual([200, []]);
      // A cursor from elsewhere opens nothing.
      expect((await ask({ path: next, token })).posts).toEqual([]);
      expect((await ask({ path: '?tag=half&status=published', token })).posts).toEqual([published]);
    }
    expect((await call({ path: '?tag=half' })).posts).toEqual([published, second, first]);
    expect((await ask({ path: '?tag=half' })).posts).toEqual([published]);
    expect((await call({ path: '?status=Draft' })).problem.code).toBe('invalid_request');
  });
});

describe('GET /blogs/{id}', () => {
  it('is asked by anybody -> the post', async () => {
    const post = await create({ title: 'To read' });
    const { status, headers, post: read } = await ask({ path: `/${post.id}` });
    expect(status).toBe(200);
    expect(read).toEqual(post);
    expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(headers.get('etag')).toMatch(/^"1-[0-9a-z]+"$/);
    expect(headers.get('last-modified')).toBe(new Date(post.updatedAt).toUTCString());
    expect(headers.get('vary')).toBe('Accept, Authorization');
    expect(headers.get('cache-control')).toBe('public, no-cache');
    expect((await call({ path: `/${post.id}` })).headers.get('cache-control')).toBe('private, no-cache');
    expect((await ask({ path: `/${post.id.toUpperCase()}` })).post).toEqual(post);
  });

  it.each([
    [undefined, 'application/json'],
    ['image/png', 'application/json'],
    ['nonsense', 'application/json'],
    ['application/json;q=0.5, text/html;q=0.4', 'application/json'],
    ['text/markdown', 'text/markdown'],
    ['text/html;q=0.5, text/markdown', 'text/markdown'],
    ['text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8', 'text/html'],
  ])('has Accept: %s -> is answered with %s', async (accept, type) => {
    const content = '\n# Text 🎉\r\n';
    const { id } = await create({ content });
    const { headers, text, post } = await ask({
      path: `/${id}`,
      ...(accept && { headers: { Accept: accept } }),
    });
    expect(headers.get('content-type')).toBe(`${type}; charset=utf-8`);
    expect(headers.get('vary')).toBe('Accept, Authorization');
    expect(headers.get('content-security-policy')).toBe(type === 'text/html' ? "default-src 'none'" : null);
    if (type === 'application/json') expect(post.content).toBe(content);
    else expect(text).toBe(type === 'text/markdown' ? content : `<p>${content.length}</p>`);
  });

  it.each(['application/json', 'text/markdown', 'text/html'])(
    'is asked by who has the %s -> 304',
    async (Accept) => {
      const post = await create({});
      const path = `/${post.id}`;
      const etag = (await ask({ path, headers: { Accept } })).headers.get('etag') ?? '';
      for (const known of [etag, `W/${etag}`, `"x", ${etag}`, '*']) {
        const { status, headers, text } = await ask({
          path,
          headers: { Accept, 'If-None-Match': known },
        });
        expect(status).toBe(304);
        expect(text).toBe('');
        expect(headers.get('etag')).toBe(etag);
        expect(headers.get('vary')).toBe('Accept, Authorization');
        expect(headers.get('cache-control')).toBe('public, no-cache');
      }
      await write('PATCH', post, { title: 'New' });
      expect((await ask({ path, headers: { Accept, 'If-None-Match': etag } })).status).toBe(200);
    },
  );

  it('is a page that cannot be made -> nothing of the post is sent', async () => {
    const { id } = await create({ content: 'unrenderable' });
    const { status, headers, text } = await ask({
      path: `/${id}`,
      headers: { Accept: 'text/html' },
    });
    expect(status).toBe(500);
    expect(text).toMatch(/^<!doctype html>/);
    expect(text).not.toContain('unrenderable');
    for (const name of ['etag', 'last-modified']) expect(headers.get(name)).toBeNull();
    expect(headers.get('cache-control')).toBe('no-store');
  });

  it('is a draft -> readers do not see it', async () => {
    const draft = await create({ status: 'draft' });
    const path = `/${draft.id}`;
    for (const token of [undefined, 'reader'] as const) {
      const { status, problem } = await ask({ path, token, headers: { 'If-None-Match': '*' } });
      expect(status).toBe(404);
      expect(problem.code).toBe('not_found');
    }
    expect((await call({ path })).post).toEqual(draft);
    await write('PATCH', draft, { status: 'published' });
    expect((await ask({ path })).status).toBe(200);
  });
});

describe('an id', () => {
  /** The lines of the log besides those that each request has. */
  const saidOfRequests = () =>
    app.lines.filter(({ requestId, msg }) => requestId !== undefined && msg !== 'request');
  const odd = ['x', '%00', '%E0%A4%A', 'a'.repeat(10_000), '..%2f', `${unknownId}x`, unknownId];
  it.each(odd)('that nobody has -> 404: %#', async (id) => {
    const before = saidOfRequests();
    for (const method of ['GET', 'PUT', 'PATCH', 'DELETE']) {
      const body = method === 'GET' || method === 'DELETE' ? {} : { body: { content: 'Text' } };
      const { status, problem } = await call({ method, path: `/${id}`, ...body });
      expect(status).toBe(404);
      expect(problem.code).toBe('not_found');
    }
    expect(saidOfRequests()).toEqual(before);
  });
});

describe('PUT /blogs/{id}', () => {
  it('has a content alone -> replaces the post and resets the rest', async () => {
    const all = { title: 'Old', author: 'Ann', tags: ['a'], slug: `slug-${randomUUID()}`, status: 'draft' };
    const post = await create(all);
    const { status, headers, post: replaced } = await write('PUT', post, { content: 'New' });
    expect(status).toBe(200);
    expect(replaced).toEqual({
      ...post,
      content: 'New',
      title: null,
      author: 'Wanda',
      tags: [],
      slug: expect.stringMatching(/^post-[0-9a-f]{8}$/),
      status: 'published',
      publishedAt: replaced.updatedAt,
      updatedAt: expect.stringMatching(time),
      version: 2,
    });
    expect(headers.get('etag')).toBe(await etagNow(post));
    expect(headers.get('last-modified')).toBe(new Date(replaced.updatedAt).toUTCString());
  });
});

describe('PATCH /blogs/{id}', () => {
  it('has some fields -> changes them, resets what is null, and keeps the rest', async () => {
    const all = { title: 'Old', author: 'Ann', tags: ['a'], slug: `slug-${randomUUID()}`, status: 'draft' };
    const post = await create(all);
    const renamed = await write('PATCH', post, { title: 'New', tags: ['b', 'b'] });
    expect(renamed.status).toBe(200);
    expect(renamed.post).toEqual({
      ...post,
      title: 'New',
      tags: ['b'],
      updatedAt: expect.stringMatching(time),
      version: 2,
    });
    expect(renamed.headers.get('etag')).toBe(await etagNow(post));
    const nulls = { title: null, author: null, tags: null, slug: null, status: null };
    const reset = await write('PATCH', post, nulls, { 'Content-Type': 'application/merge-patch+json' });
    expect(reset.post).toMatchObject({
      title: null,
      author: 'Wanda',
      tags: [],
      status: 'published',
      version: 3,
    });
    expect(reset.post.slug).toMatch(/^post-/);
    expect(reset.post.content).toBe(post.content);
  });
});

describe('If-Match', () => {
  const bodies = { PUT: { content: 'New' }, PATCH: { content: 'New' }, DELETE: undefined };
  const methods = Object.keys(bodies) as (keyof typeof bodies)[];
  const writeIf = (method: keyof typeof bodies, id: string, ifMatch: string) => {
    const body = bodies[method];
    return call({ method, path: `/${id}`, headers: { 'If-Match': ifMatch }, ...(body && { body }) });
  };

  it.each(methods)(
    'has the current version or a star -> %s happens, unless there is no post',
    async (method) => {
      const done = method === 'DELETE' ? 204 : 200;
      const { id } = await create({});
      const markdown = await ask({ path: `/${id}`, headers: { Accept: 'text/markdown' } });
      expect((await writeIf(method, id, `"other", ${markdown.headers.get('etag')}`)).status).toBe(done);
      expect((await writeIf(method, (await create({})).id, '*')).status).toBe(done);
      const [weak, compressed] = [await create({}), await create({})];
      expect((await writeIf(method, weak.id, `W/${await etagNow(weak)}`)).status).toBe(done);
      const ofApache = (await etagNow(compressed)).replace(/"$/, '-gzip"');
      expect((await writeIf(method, compressed.id, ofApache)).status).toBe(done);
      for (const condition of ['*', '"1-abc"'])
        expect((await writeIf(method, unknownId, condition)).status).toBe(404);
    },
  );

  it.each(methods)('has a version that is past -> %s is refused, with the current tag', async (method) => {
    const post = await create({});
    const past = await etagNow(post);
    await write('PATCH', post, { title: 'Newer' });
    for (const stale of [past, `W/${past}`, past.replace(/"$/, '-gzip"'), '"nobody-made-this"']) {
      const { status, headers, problem } = await writeIf(method, post.id, stale);
      expect(status).toBe(412);
      expect(problem.code).toBe('precondition_failed');
      expect(headers.get('etag')).toBe(await etagNow(post));
    }
    expect((await call({ path: `/${post.id}` })).post).toMatchObject({ content: 'Text', version: 2 });
  });
});

describe('a token that was revoked after it was loaded', () => {
  it('-> writes nothing, and is refused as any that was revoked', async () => {
    const { post } = await ask({ method: 'POST', token: 'writer', body: { content: 'kept' } });
    const path = `/${post.id}`;
    for (const call of [
      { method: 'POST', body: { content: 'new' } },
      { method: 'PUT', path, body: { content: 'new' } },
      { method: 'PATCH', path, body: { content: 'new' } },
      { method: 'DELETE', path },
    ]) {
      const { status, headers, problem } = await ask({ ...call, token: 'revoked' });
      expect([status, problem.code]).toEqual([401, 'unauthorized']);
      expect(headers.get('www-authenticate')).toBe('Bearer realm="blogs", error="invalid_token"');
    }
    expect((await ask({ path })).post).toEqual(post);
    expect(app.logs()).toContain('login refused');
  });
});

describe('a blog whose reads are closed, and whose database is unavailable', async () => {
  const closed = await startApp({ variables: { ...variables, BLOG_READS: 'token' } });
  afterAll(closed.close);
  const send = createBlogClient(`${closed.url}/base/blogs`);

  it.each<Sent>([
    { token: 'reader' },
    { token: 'other', path: `/${unknownId}` },
    { method: 'POST', body: { content: 'Canary' } },
    { method: 'PUT', path: `/${unknownId}`, body: { content: 'Canary' } },
    { method: 'PATCH', path: `/${unknownId}`, body: { title: 'Canary' } },
    { method: 'DELETE', path: `/${unknownId}` },
  ])('%j -> 503 and when to come again', async (sent) => {
    const { status, headers, problem } = await send({ token: 'writer', ...sent });
    expect(status).toBe(503);
    expect(problem.code).toBe('database_unavailable');
    expect(headers.get('retry-after')).toBe('2');
    expect(headers.get('etag')).toBeNull();
    expect(closed.logs()).not.toContain('Canary');
  });
});
