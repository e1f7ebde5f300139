import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Post } from '../../shared/contracts/contract.js';
import { startApp } from '../support/app.js';
import { createBlogClient, type Sent } from '../support/client.js';
import { openTestDatabase } from '../support/database.js';

const variables = { BLOG_BASE_URL: 'https://blog.example/base', BLOG_READS_PER_SECOND: '0' };
const app = await startApp({ variables, opened: await openTestDatabase() });
afterAll(app.close);
const ask = createBlogClient(`${app.url}/base/blogs`);

const browser = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';
const page = (path = '', call: Sent = {}) =>
  ask({ path, ...call, headers: { Accept: browser, ...call.headers } });
const create = async (body: object): Promise<Post> => {
  const { status, post } = await ask({
    method: 'POST',
    token: 'writer',
    body: { content: 'Text', ...body },
  });
  expect(status).toBe(201);
  return post;
};
const patch = (post: Post, body: object) =>
  ask({ method: 'PATCH', path: `/${post.id}`, token: 'writer', body });
const linksIn = (html: string) => [...html.matchAll(/<h2[^>]*><a href="([^"]*)"/g)].map(([, href]) => href);
const queryOf = (relation: string, html: string) =>
  new RegExp(`<a rel="${relation}" href="/base/blogs([^"]*)"`).exec(html)?.[1]?.replaceAll('&amp;', '&');
const nextIn = (html: string) => queryOf('next', html);
const previousIn = (html: string) => queryOf('prev', html);

describe('the index', () => {
  const tag = 'walrus & <co>';
  const tagged = `?tag=${encodeURIComponent(tag)}`;
  const made: Post[] = [];
  beforeAll(async () => {
    for (let n = 1; n <= 23; n++)
      made.unshift(await create({ title: `Number ${n}`, content: `Walrus ${n}, *of many*.`, tags: [tag] }));
    await create({ title: 'Not out yet', status: 'draft', tags: [tag] });
  });
  const paths = () => made.map(({ slug }) => `/base/blogs/${slug}`);

  it('is asked for a tag -> its newest posts, with their days, tags and beginnings', async () => {
    const { status, headers, text } = await page(tagged);
    expect(status).toBe(200);
    expect(headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(headers.get('vary')).toBe('Accept, Authorization');
    expect(headers.get('cache-control')).toBe('public, no-cache');
    expect(linksIn(text)).toEqual(paths().slice(0, 20));
    expect(text).toContain('<p dir="auto">Walrus 23, of many.</p>');
    expect(text).toContain(
      '<a rel="tag" href="/base/blogs?tag=walrus+%26+%3Cco%3E">walrus &amp; &lt;co&gt;</a>',
    );
    expect(text).toContain('<h1 dir="auto">Tag: walrus &amp; &lt;co&gt;</h1>');
    expect(text).toContain(
      '<link rel="canonical" href="https://blog.example/base/blogs?tag=walrus+%26+%3Cco%3E">',
    );
    expect(text).toContain(
      '<link rel="alternate" type="application/atom+xml" title="Blog" href="https://blog.example/base/feed.xml">',
    );
  });

  it('has several pages -> they lead to all posts once, and back the way they came', async () => {
    const [pages, queries] = [[(await page(`${tagged}&limit=6`)).text], ['?tag=walrus+%26+%3Cco%3E&limit=6']];
    expect(previousIn(pages[0] ?? '')).toBeUndefined();
    for (let next = nextIn(pages[0] ?? ''); next !== undefined; next = nextIn(pages.at(-1) ?? '')) {
      queries.push(next);
      pages.push((await page(next)).text);
    }
    expect(pages.flatMap(linksIn)).toEqual(paths());
    expect(pages[2]).toContain('<a href="/base/blogs?tag=walrus+%26+%3Cco%3E&amp;limit=6">Newest posts</a>');
    let back = pages.at(-1) ?? '';
    for (const before of pages.slice(0, -1).reverse()) {
      const query = previousIn(back) ?? '';
      back = (await page(query)).text;
      expect(linksIn(back)).toEqual(linksIn(before));
      expect(nextIn(back)).toBe(nextIn(before));
      if (before === pages[0]) expect(query).toBe(queries[0]);
      else expect(back).toContain('<meta name="robots" content="noindex">');
    }
    expect(back).not.toMatch(/Newe(r|st) posts/);
  });

  it('is asked for 200 posts -> the newest fifty, and leads on to the others', async () => {
    const many = Array.from({ length: 52 }, (_, n) => `Of many, ${n}`);
    for (const title of many) await create({ title, tags: ['many'], content: '![['.repeat(333) });
    const first = (await page('?tag=many&limit=200')).text;
    expect(linksIn(first)).toHaveLength(50);
    expect(linksIn((await page(nextIn(first) ?? '')).text)).toHaveLength(2);
    expect(first).toContain(`<p dir="auto">${'![['.repeat(80)}…</p>`);
  });

  it.each([undefined, 'reader', 'writer'] as const)(
    'is asked by %s -> never a draft, which has no address there',
    async (token) => {
      const { text, headers } = await page(tagged, { token });
      expect(text).not.toContain('Not out yet');
      expect(headers.get('cache-control')).toBe(token ? 'private, no-cache' : 'public, no-cache');
      const drafts = await page(`${tagged}&status=draft`, { token });
      expect(drafts.text).toContain('Nothing was found.');
      expect(drafts.text).toContain('<meta name="robots" content="noindex">');
      expect(linksIn(drafts.text)).toEqual([]);
    },
  );

  it('is asked for what is published -> the same posts, at their one address', async () => {
    const { text } = await page(`${tagged}&status=published&limit=6`);
    expect(linksIn(text)).toEqual(paths().slice(0, 6));
    expect(nextIn(text)).toMatch(/^\?tag=walrus\+%26\+%3Cco%3E&status=published&limit=6&cursor=/);
    expect(text).toContain(
      '<link rel="canonical" href="https://blog.example/base/blogs?tag=walrus+%26+%3Cco%3E">',
    );
  });

  it('is searched -> what was found, which search engines do not keep', async () => {
    const { text } = await page('?q=walrus+7');
    expect(linksIn(text)).toEqual(['/base/blogs/number-7']);
    expect(text).toContain('name="q" maxlength="500" value="walrus 7"');
    expect(text).toContain('<meta name="robots" content="noindex">');
    expect(text).not.toContain('rel="canonical"');
    expect((await page('?q=nobody-writes-this')).text).toContain('Nothing was found.');
    expect(linksIn((await page('?q=+')).text)).toHaveLength(20);
  });

  it('has a form -> its policy allows that, and neither scripts nor styles of others', async () => {
    const { headers, text } = await page();
    const [, style = ''] = /<style>([\s\S]*?)<\/style>/.exec(text) ?? [];
    const hash = createHash('sha256').update(style).digest('base64');
    expect(headers.get('content-security-policy')).toBe(
      `default-src 'none'; img-src 'self'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'`,
    );
    expect(text).toContain('<form role="search" action="/base/blogs">');
    expect(text).not.toMatch(/<script|\sstyle=|\son\w+=|\ssrc=/);
  });

  it.each([
    ['a search', `?q=${encodeURIComponent('"><script>alert(1)</script><!--')}`],
    ['a tag', `?tag=${encodeURIComponent("'><img src=x onerror=alert(1)>")}`],
    ['an author', `?author=${encodeURIComponent('</title></style><script>alert(1)</script>')}`],
  ])('has %s in its address -> it is escaped', async (_, path) => {
    const { status, text } = await page(path);
    expect(status).toBe(200);
    expect(text).not.toMatch(/<script|<img|<!--/);
    expect(text.match(/<\/title>/g)).toHaveLength(1);
  });

  it.each(['?q=%00', `?q=${'x'.repeat(501)}`, '?tag=a&tag=b'])(
    'is asked with %s -> 400 as a page that repeats nothing of it',
    async (path) => {
      const { status, headers, text } = await page(path);
      expect([status, headers.get('content-type')]).toEqual([400, 'text/html; charset=utf-8']);
      expect(headers.get('content-security-policy')).toContain("default-src 'none'");
      expect(text).toContain('<h1>Invalid request</h1>');
      expect(text).not.toContain('xxxxxxxxxx');
    },
  );

  it('is asked by who has it, or by HEAD -> 304, or no body', async () => {
    const first = await page(tagged);
    const known = { 'If-None-Match': first.headers.get('etag') ?? '' };
    const again = await page(tagged, { headers: known });
    expect([again.status, again.text]).toEqual([304, '']);
    expect(again.headers.get('vary')).toBe('Accept, Authorization');
    const head = await page(tagged, { method: 'HEAD' });
    expect([head.status, head.text]).toEqual([200, '']);
    expect(head.headers.get('content-length')).toBe(first.headers.get('content-length'));
    await create({ tags: [tag] });
    expect((await page(tagged, { headers: known })).status).toBe(200);
  });

  it.each(['*/*', 'application/json, text/html;q=0.9', 'text/html;q=0', 'text/*', ''])(
    'is asked with Accept: %j -> JSON',
    async (accept) => {
      const { status, headers } = await ask({ path: tagged, headers: { Accept: accept } });
      expect([status, headers.get('content-type')]).toEqual([200, 'application/json; charset=utf-8']);
      expect(headers.get('vary')).toBe('Accept, Authorization');
    },
  );
});

describe('a slug', () => {
  it('is asked for -> the post as by its id, in every representation', async () => {
    const post = await create({ title: 'A first one' });
    expect((await ask({ path: '/a-first-one' })).post).toEqual(post);
    for (const Accept of ['text/html', 'text/markdown', 'application/json']) {
      const [byId, bySlug] = [
        await ask({ path: `/${post.id}`, headers: { Accept } }),
        await ask({ path: '/a-first-one', headers: { Accept } }),
      ];
      expect([bySlug.status, bySlug.text]).toEqual([200, byId.text]);
      expect(bySlug.headers.get('etag')).toBe(byId.headers.get('etag'));
      const known = { Accept, 'If-None-Match': byId.headers.get('etag') ?? '' };
      const again = await ask({ path: '/a-first-one', headers: known });
      expect([again.status, again.text]).toEqual([304, '']);
      expect(again.headers.get('etag')).toBe(byId.headers.get('etag'));
      expect(again.headers.get('vary')).toBe('Accept, Authorization');
      expect(again.headers.get('cache-control')).toBe('public, no-cache');
    }
  });

  it('was changed -> leads to the present one', async () => {
    const post = await create({ slug: 'old-name' });
    await patch(post, { slug: 'new-name' });
    for (const method of ['GET', 'HEAD']) {
      const response = await ask({ path: '/old-name?x=1', method, redirect: 'manual' });
      expect([response.status, response.headers.get('location')]).toEqual([308, '/base/blogs/new-name']);
      // Not to be kept: the slug may be taken.
      expect(response.headers.get('cache-control')).toBe('public, no-cache');
      expect(response.text).toBe('');
    }
    expect((await page('/old-name')).text).toBe((await page('/new-name')).text);
  });

  it('looks like the id of another post -> does not hide that one', async () => {
    const hidden = await create({ title: 'Hidden?' });
    const odd = await create({ slug: hidden.id, title: 'Odd', tags: ['odd'] });
    expect((await ask({ path: `/${hidden.id}` })).post).toEqual(hidden);
    expect(linksIn((await page('?tag=odd')).text)).toEqual([`/base/blogs/${odd.id}`]);
  });

  it('is of a draft -> readers do not hear of it', async () => {
    const draft = await create({ slug: 'still-a-draft', status: 'draft' });
    for (const token of [undefined, 'reader'] as const)
      expect((await page('/still-a-draft', { token })).status).toBe(404);
    expect((await ask({ path: '/still-a-draft', token: 'writer' })).post).toEqual(draft);
  });

  it.each(['PUT', 'PATCH', 'DELETE'])('is sent %s -> there is nothing', async (method) => {
    await create({ slug: `to-${method.toLowerCase()}` });
    const path = `/to-${method.toLowerCase()}`;
    const { status, problem } = await ask({ method, path, token: 'writer', body: { content: 'x' } });
    expect([status, problem.code]).toEqual([404, 'not_found']);
  });

  it.each(['No-Slug', '%00', '..%2fx'])('is %s, which none can be -> 404, as a page too', async (slug) => {
    const { status, text } = await page(`/${slug}`);
    expect(status).toBe(404);
    expect(text).toContain('<h1>Not found</h1>');
    expect((await ask({ path: `/${slug}` })).problem.code).toBe('not_found');
  });
});

describe('a page of what went wrong', () => {
  it('is of a write -> a problem', async () => {
    const { status, problem } = await page('', { method: 'POST', body: {} });
    expect([status, problem.code]).toEqual([401, 'unauthorized']);
  });

  it('is of missing credentials, where reads take a token -> asks for one', async () => {
    await using closed = await startApp({ variables: { ...variables, BLOG_READS: 'token' } });
    for (const path of ['', '/a-post', '?q=%00']) {
      const asked = { path: `/base/blogs${path}`, headers: { Accept: browser } };
      const { status, headers, text } = await closed.ask(asked);
      expect([status, headers.get('content-type')]).toEqual([401, 'text/html; charset=utf-8']);
      expect(headers.get('www-authenticate')).toMatch(/^Bearer /);
      expect(text).toContain('<h1>Unauthorized</h1>');
    }
  });

  it('is of a database that is away -> says so', async () => {
    await using away = await startApp({ variables });
    for (const path of ['', '?q=a', '/a-post', '/01890000-0000-7000-8000-000000000001']) {
      const asked = { path: `/base/blogs${path}`, headers: { Accept: browser } };
      const { status, headers, text } = await away.ask(asked);
      expect(status).toBe(503);
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
      expect(text).toMatch(/^<!doctype html>[\s\S]*<h1>Database unavailable<\/h1>/);
      expect(text).toContain(`Request ${headers.get('x-request-id')}`);
      expect(text).toContain('<meta name="robots" content="noindex">');
    }
  });
});
