import { afterAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Rendering } from '../../../api/blog/rendering/markdown.js';
import type { PostFields } from '../../../db/posts/post-creation.js';
import { PostStore } from '../../../db/posts/post-store.js';
import { posts as postsTable } from '../../../db/schema.js';
import { Failure } from '../../../shared/failures.js';
import { startApp } from '../../support/app.js';
import { openTestDatabase } from '../../support/database.js';
import { readAtom, readJsonFeed } from '../../support/feed-readers.js';
import { unhurriedRenderer } from '../../support/renderers.js';

const opened = await openTestDatabase();
const store = new PostStore(opened.database);
let rendered: string[];
/** Runs before the renderer is asked. */
let beforeRender: () => Rendering | undefined;
const renderer = unhurriedRenderer();
const render = async (markdown: string) => {
  rendered.push(markdown);
  return beforeRender() ?? renderer.render(markdown);
};
const app = await startApp({
  opened,
  renderer: { ...renderer, render },
  variables: {
    BLOG_TITLE: 'News & "views" <b>',
    BLOG_BASE_URL: 'https://blog.example/base/',
    BLOG_LANGUAGE: 'de',
  },
});
afterAll(app.close);

beforeEach(async () => {
  await opened.database.run((db) => db.delete(postsTable));
  rendered = [];
  app.authentication.publicReads = true;
  beforeRender = () => undefined;
});

const get = (path: '/feed.json' | '/feed.xml', headers: Record<string, string> = {}) =>
  app.ask({ path: `/base${path}`, headers });

const publish = async (fields: Partial<PostFields> = {}) => {
  const defaults = { content: 'Text', title: 'Title', author: 'Ann', tags: [], slug: undefined };
  return (await store.create({ ...defaults, status: 'published', ...fields })).post;
};

describe('GET /feed.json', () => {
  it('published posts and a draft -> a JSON Feed of the first, newest first', async () => {
    const first = await publish({ title: null, content: 'No *title*' });
    const second = await publish({
      title: '<b> & "c"',
      content: '# Hi\n\n<script>x</script>',
      tags: ['d', 'e & f'],
    });
    await publish({ status: 'draft' });
    const { status, headers, text } = await get('/feed.json');
    expect(status).toBe(200);
    expect(headers.get('content-type')).toMatch(/^application\/feed\+json(; charset=utf-8)?$/);
    expect(readJsonFeed(text)).toEqual({
      version: 'https://jsonfeed.org/version/1.1',
      title: 'News & "views" <b>',
      home_page_url: 'https://blog.example/base/blogs',
      feed_url: 'https://blog.example/base/feed.json',
      language: 'de',
      items: [
        {
          id: `urn:uuid:${second.id}`,
          url: `https://blog.example/base/blogs/${second.slug}`,
          title: '<b> & "c"',
          content_html: expect.stringMatching(/^<h1>Hi<\/h1>\s*$/),
          date_published: second.publishedAt,
          date_modified: second.updatedAt,
          authors: [{ name: 'Ann' }],
          tags: ['d', 'e & f'],
        },
        {
          id: `urn:uuid:${first.id}`,
          url: `https://blog.example/base/blogs/${first.slug}`,
          content_html: '<p>No <em>title</em></p>\n',
          date_published: first.publishedAt,
          date_modified: first.updatedAt,
          authors: [{ name: 'Ann' }],
        },
      ],
    });
    expect(text).toMatch(/^\{"version":/);
  });

  it.each([
    ['[a](/about)', 'href="https://blog.example/about"'],
    ['![](/i.png)', 'src="https://blog.example/i.png"'],
    ['![](i.png?a=1&b=2)', 'src="https://blog.example/base/blogs/i.png?a=1&amp;b=2"'],
    ['<img alt=" src=&quot;x" src=./i.png>', 'src="https://blog.example/base/blogs/i.png"'],
    ['<a title="href=/x" href=../b.html>b</a>', 'href="https://blog.example/base/b.html"'],
    ['[a](?q=1)', 'href="https://blog.example/base/blogs/here?q=1"'],
    ['[a](#part)', 'href="https://blog.example/base/blogs/here#part"'],
    ['<a href="HTTP://c.example">c</a>', 'href="HTTP://c.example"'],
    ['[a](mailto:d@e.example)', 'href="mailto:d@e.example"'],
    ['`<a href="/x">`', '<code>&lt;a href="/x"&gt;</code>'],
  ])('a post with %s -> an address that is whole: %s', async (content, html) => {
    await publish({ content, slug: 'here' });
    expect(readJsonFeed((await get('/feed.json')).text).items[0].content_html).toContain(html);
    expect(readAtom((await get('/feed.xml')).text).contents[0]).toContain(html);
  });

  it('a post with a footnote -> links there and back within the post', async () => {
    await publish({ content: 'a[^1]\n\n[^1]: b', slug: 'here' });
    const [{ content_html: html }] = readJsonFeed((await get('/feed.json')).text).items;
    const hrefs = [...html.matchAll(/ href="([^"#]*)#([^"]*)"/g)].map(([, page, id]) => [page, id]);
    expect(hrefs.map(([page]) => page)).toEqual(Array(2).fill('https://blog.example/base/blogs/here'));
    for (const [, id] of hrefs) expect(html).toContain(` id="${id}"`);
  });
});

describe('GET /feed.xml', () => {
  it('published posts and a draft -> an Atom feed of the first, newest first', async () => {
    const first = await publish({ title: null, content: 'No *title* but words' });
    const second = await publish({ title: 'T', content: '**b** <!-- c -->', tags: ['d', 'e & f'] });
    const changed = await store.patch(first.id, { author: 'Bob' });
    await publish({ status: 'draft' });
    const { status, headers, text } = await get('/feed.xml');
    expect(status).toBe(200);
    expect(headers.get('content-type')).toMatch(/^application\/atom\+xml(; charset=utf-8)?$/);
    expect(readAtom(text)).toEqual({
      ids: [`urn:uuid:${second.id}`, `urn:uuid:${first.id}`],
      titles: ['T', 'No title but words'],
      authors: ['Ann', 'Bob'],
      contents: ['<p><strong>b</strong> </p>', '<p>No <em>title</em> but words</p>'],
      categories: ['d', 'e & f'],
      links: [
        `https://blog.example/base/blogs/${second.slug}`,
        `https://blog.example/base/blogs/${first.slug}`,
      ],
      feed: {
        id: ['https://blog.example/base/feed.xml'],
        title: ['News & "views" <b>'],
        updated: [changed.kind === 'changed' && changed.post.updatedAt],
        self: ['https://blog.example/base/feed.xml'],
        alternate: ['https://blog.example/base/blogs'],
      },
    });
  });

  it('no post -> valid, as the JSON feed is', async () => {
    expect(readAtom((await get('/feed.xml')).text).ids).toEqual([]);
    expect(readJsonFeed((await get('/feed.json')).text).items).toEqual([]);
  });

  it('any characters in the posts -> valid', async () => {
    const odd =
      '\u0001\u0008\u000b\u001f\u007f\u0085\ufffe\uffff\u{1ffff}😀 ]]> <![CDATA[ &amp; &#1; \r\n\t </feed> "\'';
    await publish({ content: odd, title: odd, author: odd, tags: [odd, '\u0001', '\ufffe'] });
    await publish({ content: '\u0001', title: null, author: '\uffff' });
    const shown = '\ufffd\ufffd\ufffd\ufffd\u007f\u0085\ufffd\ufffd\u{1ffff}😀 ]]>';
    const { titles, authors, contents, categories } = readAtom((await get('/feed.xml')).text);
    expect(titles).toEqual(['\ufffd', expect.stringContaining(`${shown} <![CDATA[ &amp; &#1;`)]);
    expect(authors).toEqual(['\ufffd', expect.stringContaining(`${shown} <![CDATA[`)]);
    expect(categories).toEqual([expect.stringContaining(shown), '\ufffd', '\ufffd']);
    expect(contents[1]).toContain('\ufffd\u007f');
    const [, item] = readJsonFeed((await get('/feed.json')).text).items;
    expect(item).toMatchObject({
      title: odd.trim(),
      authors: [{ name: odd }],
      tags: [odd, '\u0001', '\ufffe'],
    });
  });
});

describe('the feeds', () => {
  it('of more posts -> hold the 50 newest', async () => {
    for (let count = 0; count < 51; count += 1) await publish({ title: `Post ${count}` });
    const { items } = readJsonFeed((await get('/feed.json')).text);
    expect(items).toHaveLength(50);
    expect(items[0].title).toBe('Post 50');
    expect(readAtom((await get('/feed.xml')).text).titles.at(-1)).toBe('Post 1');
  });

  it.each(['/feed.json', '/feed.xml'] as const)(
    'are asked by who has them -> 304, until a post changes: %s',
    async (path) => {
      const { id } = await publish();
      const { headers } = await get(path);
      const etag = headers.get('etag') ?? '';
      expect(etag).toMatch(/^"[\w-]+"$/);
      rendered = [];
      for (const known of [etag, `"x", W/${etag}`, '*']) {
        const again = await get(path, { 'If-None-Match': known });
        expect(again).toMatchObject({ status: 304, text: '' });
        expect(again.headers.get('etag')).toBe(etag);
        expect(again.headers.get('cache-control')).toBe('public, no-cache');
      }
      for (const change of [
        () => store.patch(id, { tags: ['new'] }),
        () => publish(),
        () => store.patch(id, { status: 'draft' }),
      ]) {
        const before = (await get(path)).headers.get('etag') ?? '';
        await change();
        expect(await get(path, { 'If-None-Match': before })).toMatchObject({ status: 200 });
      }
    },
  );

  it('are asked by many at once, in both formats -> rendered once', async () => {
    await publish({ content: 'one' });
    await publish({ content: 'two' });
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, index) => get(index % 2 === 0 ? '/feed.json' : '/feed.xml')),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(200));
    expect(rendered.sort()).toEqual(['one', 'two']);
    await get('/feed.json');
    expect(rendered).toHaveLength(2);
  });

  it('are asked after the database was unavailable -> tried again', async () => {
    await publish();
    const away = vi.spyOn(opened.database, 'run').mockRejectedValue(new Failure('database_unavailable'));
    expect(await get('/feed.xml')).toMatchObject({ status: 503 });
    away.mockRestore();
    expect(await get('/feed.xml')).toMatchObject({ status: 200 });
  });

  it('are asked while too many posts are being rendered -> for later', async () => {
    await publish({ content: '*one*' });
    beforeRender = () => ({ kind: 'busy' });
    const refused = await get('/feed.json');
    expect(refused.status).toBe(500);
    expect(refused.headers.get('retry-after')).toBe('2');
    expect(refused.headers.get('etag')).toBeNull();
    expect(refused.body).toMatchObject({ code: 'internal', retryable: true });
    beforeRender = () => undefined;
    expect((await get('/feed.json')).text).toContain('<em>one</em>');
  });

  it('are read with a token where reads are closed -> no shared cache keeps them', async () => {
    app.authentication.publicReads = false;
    expect(await get('/feed.json')).toMatchObject({ status: 401 });
    const { status, headers } = await get('/feed.json', { Authorization: 'Bearer reader' });
    expect([status, headers.get('cache-control')]).toEqual([200, 'private, no-cache']);
    expect(headers.get('vary')).toBe('Authorization');
  });
});
