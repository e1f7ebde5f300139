import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { createMarkdownRenderer } from '../../api/markdown.js';
import { createPostPage, headingOf } from '../../api/post-page.js';
import type { Post } from '../../shared/contract.js';

const published: Post = {
  id: '01890000-0000-7000-8000-000000000001',
  title: 'A title',
  content: 'Hello *world*',
  author: 'Ann',
  tags: ['one', 'two words'],
  slug: 'a-title',
  status: 'published',
  publishedAt: '2026-11-03T23:59:59.999Z',
  createdAt: '2026-11-01T00:00:00.000Z',
  updatedAt: '2026-11-04T00:00:00.000Z',
  version: 2,
};

const pageOf = createPostPage({ blogTitle: 'The blog', render: createMarkdownRenderer() });
const htmlOf = (changes: Partial<Post>): string => pageOf({ ...published, ...changes }).html;

describe('createPostPage', () => {
  it('shows the title, the author, the day, the text and the tags', () => {
    const { html } = pageOf(published);
    expect(html).toMatch(/^<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">/);
    expect(html).toContain('<title>A title – The blog</title>');
    expect(html).toContain('<h1 dir="auto">A title</h1>');
    expect(html).toContain(
      '<bdi>Ann</bdi> · <time datetime="2026-11-03T23:59:59.999Z">November 3, 2026</time>',
    );
    expect(html).toContain('<p>Hello <em>world</em></p>');
    expect(html).toContain('<li dir="auto">one</li>\n<li dir="auto">two words</li>');
    expect(html).toContain('(prefers-color-scheme: dark)');
  });

  it('has a policy that allows its style and images over https, and nothing else', () => {
    const { html, csp } = pageOf(published);
    const [, style = ''] = /<style>([\s\S]*?)<\/style>/.exec(html) ?? [];
    const hash = createHash('sha256').update(style).digest('base64');
    expect(csp.split('; ')).toEqual([
      "default-src 'none'",
      'img-src https:',
      `style-src 'sha256-${hash}'`,
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
    ]);
    expect(html).not.toMatch(/<script|<link|\sstyle=|\son\w+=|\ssrc=/);
  });

  const attack = '</title></style><script>alert(1)</script>"\'><img src=x onerror=alert(1)>&amp;';
  const escaped =
    '&lt;/title&gt;&lt;/style&gt;&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&gt;&lt;img src=x onerror=alert(1)&gt;&amp;amp;';

  it.each([
    ['title', { title: attack }, 2],
    ['author', { author: attack }, 2],
    ['tag', { tags: [attack] }, 1],
  ])('escapes a hostile %s wherever it stands', (_name, changes, places) => {
    const html = htmlOf(changes);
    expect(html).not.toMatch(/<script|<img/);
    expect(html.split(escaped)).toHaveLength(places + 1);
    expect(html.match(/<\/title>/g)).toHaveLength(1);
    expect(html.match(/<\/style>/g)).toHaveLength(1);
  });

  it('escapes the title of the blog and cleans the text', () => {
    const hostile = createPostPage({ blogTitle: attack, render: createMarkdownRenderer() });
    const { html } = hostile({ ...published, content: attack });
    expect(html).not.toMatch(/<script|onerror=alert\(1\)>[^&]|<img[^>]*onerror/);
    expect(html).toContain(`<header>${escaped}</header>`);
  });

  it('calls a post without a title by its text, in the title of the page alone', () => {
    const html = htmlOf({ title: null });
    expect(html).toContain('<title>Hello world – The blog</title>');
    expect(html).not.toContain('<h1');
  });

  it('says that a draft is one, also one that was published before', () => {
    expect(htmlOf({ status: 'draft', publishedAt: null })).toContain('<bdi>Ann</bdi> · Draft');
    expect(htmlOf({ status: 'draft' })).not.toContain('<time');
  });

  it('leaves out the list of tags when there are none', () => {
    expect(htmlOf({ tags: [] })).not.toContain('<ul');
  });
});

describe('headingOf', () => {
  it.each([
    [' A title ', '<p>text</p>', 'A title'],
    [null, '<p>text</p>', 'text'],
    ['  ', '<p>text</p>', 'text'],
    [null, '<p><img src="https://a.example/b.png" /></p>', 'November 3, 2026'],
  ])('of the title %j and the text %j is %j', (title, content, heading) => {
    expect(headingOf({ ...published, title }, content)).toBe(heading);
  });
});
