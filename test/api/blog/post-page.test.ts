import { createHash } from 'node:crypto';
import { afterAll, describe, expect, it } from 'vitest';
import { blogOf } from '../../../api/blog/blog-layout.js';
import { createPostPages, headingOf } from '../../../api/blog/post-page.js';
import { createExcerpts } from '../../../api/blog/rendering/excerpts.js';
import { createRenderedPosts } from '../../../api/blog/rendering/rendered-posts.js';
import type { Post } from '../../../shared/contracts/contract.js';
import { postOf } from '../../support/posts.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { unhurriedRenderer } from '../../support/renderers.js';

const published = postOf({
  title: 'A title',
  content: 'Hello *world*',
  tags: ['one', 'two words'],
  publishedAt: '2026-11-03T23:59:59.999Z',
});

const renderer = unhurriedRenderer();
afterAll(() => renderer.close());
const render = createRenderedPosts({ renderer, log: createRecordingLog().log, maxBytes: 1 });
const excerpts = createExcerpts(renderer, 2_147_483_647);
const blog = blogOf({
  BLOG_TITLE: 'The blog',
  BLOG_BASE_URL: 'https://blog.example/base',
  BLOG_LANGUAGE: 'en',
});
const pagesWith = (changes: Partial<Parameters<typeof createPostPages>[0]>) =>
  createPostPages({ blog, images: ['https'], render, excerpts, ...changes });
const pages = pagesWith({});
const htmlOf = async (changes: Partial<Post>): Promise<string> =>
  (await pages.render({ ...published, ...changes })).html;

describe('createPostPages', () => {
  it('shows the title, the author, the day, the text and the tags', async () => {
    const { html } = await pages.render(published);
    expect(html).toMatch(/^<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">/);
    expect(html).toContain('<title>A title – The blog</title>');
    expect(html).toContain('<h1 dir="auto">A title</h1>');
    expect(html).toContain(
      '<bdi>Ann</bdi> · <time datetime="2026-11-03T23:59:59.999Z">November 3, 2026</time>',
    );
    expect(html).toContain('<p>Hello <em>world</em></p>');
    expect(html).toContain(
      '<li dir="auto"><a rel="tag" href="/base/blogs?tag=one">one</a></li>\n' +
        '<li dir="auto"><a rel="tag" href="/base/blogs?tag=two+words">two words</a></li>',
    );
    expect(html).toContain('<header><a href="/base/blogs">The blog</a></header>');
    expect(html).toContain('(prefers-color-scheme: dark)');
  });

  it.each([
    ['# A *title*\n\ntext', 1],
    ['A  title\n===', 1],
    ['<h1 title="x">A title</h1>', 1],
    ['# Another title', 2],
    ['text\n\n# A title', 2],
    ['## A title', 1],
  ])('shows a title once with which the text begins: %j', async (content, count) => {
    const html = await htmlOf({ title: ' A title ', content });
    expect(html.match(/<h1/g)).toHaveLength(count);
    expect(html).toContain('<title>A title – The blog</title>');
  });

  it('has a policy that allows its style and images over https, and nothing else', async () => {
    const { html, csp } = await pages.render(published);
    const [, style = ''] = /<style>([\s\S]*?)<\/style>/.exec(html) ?? [];
    const hash = createHash('sha256').update(style).digest('base64');
    expect(csp.split('; ')).toEqual([
      "default-src 'none'",
      "img-src 'self' https:",
      `style-src 'sha256-${hash}'`,
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
    ]);
    expect(html).not.toMatch(/<script|<link rel="(?!alternate|canonical)|\sstyle=|\son\w+=|\ssrc=/);
  });

  it.each([
    [['none'], "img-src 'self'"],
    [
      ['images.example.org', '*.example.net:8443'],
      "img-src 'self' https://images.example.org https://*.example.net:8443",
    ],
  ])('takes images from where it was told: %j', async (images, directive) => {
    const choosy = pagesWith({ images });
    expect((await choosy.render(published)).csp.split('; ')).toContain(directive);
    expect(choosy.edition).not.toBe(pages.edition);
  });

  const attack = '</title></style><script>alert(1)</script>"\'><img src=x onerror=alert(1)>&amp;';
  const escaped =
    '&lt;/title&gt;&lt;/style&gt;&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&gt;&lt;img src=x onerror=alert(1)&gt;&amp;amp;';

  it.each([
    ['title', { title: attack }, 3],
    ['author', { author: attack }, 2],
    ['tag', { tags: [attack] }, 2],
  ])('escapes a hostile %s wherever it stands', async (_name, changes, places) => {
    const html = await htmlOf(changes);
    expect(html).not.toMatch(/<script|<img/);
    expect(html.split(escaped)).toHaveLength(places + 1);
    expect(html.match(/<\/title>/g)).toHaveLength(1);
    expect(html.match(/<\/style>/g)).toHaveLength(1);
  });

  it('escapes the title of the blog and cleans the text', async () => {
    const hostile = pagesWith({ blog: { ...blog, title: attack } });
    const { html } = await hostile.render({ ...published, content: attack });
    expect(html).not.toMatch(/<script|onerror=alert\(1\)>[^&]|<img[^>]*onerror/);
    expect(html).toContain(`<header><a href="/base/blogs">${escaped}</a></header>`);
  });

  it('calls a post without a title by its text, in the title of the page alone', async () => {
    const html = await htmlOf({ title: null });
    expect(html).toContain('<title>Hello world – The blog</title>');
    expect(html).not.toContain('<h1');
  });

  it('says that a draft is one, also one that was published before', async () => {
    expect(await htmlOf({ status: 'draft', publishedAt: null })).toContain('<bdi>Ann</bdi> · Draft');
    expect(await htmlOf({ status: 'draft' })).not.toContain('<time');
  });

  it('shows the source of a text that cannot be rendered, and says whether it may be later', async () => {
    const content = '<script>alert(1)</script>';
    for (const final of [true, false]) {
      const written = pagesWith({ render: async () => ({ html: '<pre>a</pre>', final }) });
      const page = await written.render({ ...published, content });
      expect(page).toMatchObject({ final, html: expect.stringContaining('<pre>a</pre>') });
    }
  });

  it('describes a post by its beginning, and is not final while there was no time to find that', async () => {
    expect(await htmlOf({})).toContain('<meta name="description" content="Hello world">');
    const page = await pagesWith({ excerpts: async () => [undefined] }).render(published);
    expect(page).toMatchObject({
      final: false,
      html: expect.stringContaining('<p>Hello <em>world</em></p>'),
    });
    expect(page.html).not.toContain('description');
  });

  it('has another edition with another title of the blog', () => {
    const editions = ['A', 'A', 'B'].map((title) => pagesWith({ blog: { ...blog, title } }).edition);
    expect(editions[0]).toMatch(/^[0-9a-f]{8}$/);
    expect(editions[1]).toBe(editions[0]);
    expect(editions[2]).not.toBe(editions[0]);
  });
});

describe('headingOf', () => {
  it.each([
    [' A title ', '<p>text</p>', 'A title'],
    [null, '<p>text</p>', 'text'],
    ['  ', '<p>text</p>', 'text'],
    [null, '<p><img src="https://a.example/b.png" /></p>', 'November 3, 2026'],
  ])('of the title %j and the text %j is %j', (title, content, heading) => {
    expect(headingOf({ ...published, title }, content, blog)).toBe(heading);
  });
});
