import { createHash } from 'node:crypto';
import type { Post } from '../../shared/contract.js';
import { beginsWithTitle, escapeHtml, excerptOf, rendererVersion } from './rendering/markdown.js';
import type { RenderPost } from './rendering/rendered-posts.js';

/** The HTML pages of posts. */
export interface PostPages {
  /** Changes whenever anything on a page but the post changes; lowercase letters and digits, at most 16. */
  readonly edition: string;
  render(post: Post): Promise<PostPage>;
}

interface PostPage {
  html: string;
  /** The Content-Security-Policy that the page needs. */
  csp: string;
  /** Whether rendering this version of the post again gives the same page. */
  final: boolean;
}

interface PostPagesDeps {
  /** Title of the blog, shown above every post. */
  blogTitle: string;
  /** Where images may come from: `https` (any host), `none`, or hosts. */
  images: readonly string[];
  render: RenderPost;
}

/** Makes the pages of posts: HTML documents without scripts that load nothing but images. */
export function createPostPages({ blogTitle, images, render }: PostPagesDeps): PostPages {
  const csp = policyOf(images);
  return {
    edition: editionOf(blogTitle, csp),
    async render(post) {
      const { html: content, final } = await render(post);
      return { html: pageOf({ post, blogTitle, content }), csp, final };
    },
  };
}

/** Includes a sample page, so that a change of the template changes the edition. */
function editionOf(blogTitle: string, csp: string): string {
  const page = pageOf({ post: samplePost, blogTitle, content: '' });
  const facts = JSON.stringify([rendererVersion, csp, page]);
  return createHash('sha256').update(facts).digest('hex').slice(0, 8);
}

/** A post with every part that a page can show. */
const samplePost: Post = {
  id: '',
  title: 'Title',
  content: '',
  author: '',
  tags: [''],
  slug: '',
  status: 'published',
  publishedAt: '1970-01-01T00:00:00.000Z',
  createdAt: '1970-01-01T00:00:00.000Z',
  updatedAt: '1970-01-01T00:00:00.000Z',
  version: 1,
};

/** The heading of a post: its title, else the beginning of its text, else (for a text without words) its date. */
export function headingOf(post: Post, content: string): string {
  return post.title?.trim() || excerptOf(content) || dayOf(post.publishedAt ?? post.createdAt);
}

const days = new Intl.DateTimeFormat('en', { dateStyle: 'long', timeZone: 'UTC' });
const dayOf = (time: string): string => days.format(new Date(time));

const style = `
:root { color-scheme: light dark; --text: #1d1d1f; --soft: #5c5c63; --page: #fff; --raised: #f3f3f5; --link: #0b57d0; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e6e6ea; --soft: #a5a5ad; --page: #17171a; --raised: #242429; --link: #8ab4f8; }
}
body { margin: 0; background: var(--page); color: var(--text); font: 1.0625rem/1.65 system-ui, sans-serif; }
body > * { max-width: 42rem; margin: 0 auto; padding: 1.5rem 1.25rem; overflow-wrap: break-word; }
body > header, .about { color: var(--soft); font-size: 0.9375rem; }
h1, h2, h3 { line-height: 1.25; }
a { color: var(--link); }
img { max-width: 100%; height: auto; }
pre, code { background: var(--raised); border-radius: 0.3rem; font-family: ui-monospace, monospace; font-size: 0.9em; }
code { padding: 0.1em 0.3em; }
pre { padding: 0.9rem; overflow-x: auto; white-space: pre-wrap; }
pre code { padding: 0; font-size: 1em; }
blockquote { margin-inline: 0; padding-inline-start: 1rem; border-inline-start: 0.2rem solid var(--soft); color: var(--soft); }
table { display: block; overflow-x: auto; border-collapse: collapse; }
th, td { padding: 0.35rem 0.7rem; border: 1px solid var(--soft); }
.tags { display: flex; flex-wrap: wrap; gap: 0.5rem; padding: 0; list-style: none; }
.tags li { padding: 0 0.6rem; border-radius: 1rem; background: var(--raised); }
`;

const styleHash = createHash('sha256').update(style).digest('base64');
const imageSources = new Map([
  ['https', 'https:'],
  ['none', "'none'"],
]);

const policyOf = (images: readonly string[]): string =>
  [
    "default-src 'none'",
    `img-src ${images.map((source) => imageSources.get(source) ?? `https://${source}`).join(' ')}`,
    `style-src 'sha256-${styleHash}'`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');

interface PageParts {
  post: Post;
  blogTitle: string;
  content: string;
}

function pageOf({ post, blogTitle, content }: PageParts): string {
  const title = post.title?.trim();
  const titleAbove = title && !beginsWithTitle(content, title);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="author" content="${escapeHtml(post.author)}">
<title>${escapeHtml(`${headingOf(post, content)} – ${blogTitle}`)}</title>
<style>${style}</style>
</head>
<body>
<header>${escapeHtml(blogTitle)}</header>
<main>
<article>
${titleAbove ? `<h1 dir="auto">${escapeHtml(title)}</h1>\n` : ''}<p class="about">${aboutOf(post)}</p>
<div dir="auto">
${content}
</div>
${tagsOf(post.tags)}</article>
</main>
</body>
</html>
`;
}

function aboutOf({ author, status, publishedAt }: Post): string {
  const name = `<bdi>${escapeHtml(author)}</bdi>`;
  if (status === 'draft') return `${name} · Draft`;
  return publishedAt === null
    ? name
    : `${name} · <time datetime="${escapeHtml(publishedAt)}">${dayOf(publishedAt)}</time>`;
}

function tagsOf(tags: readonly string[]): string {
  if (tags.length === 0) return '';
  const items = tags.map((tag) => `<li dir="auto">${escapeHtml(tag)}</li>`);
  return `<ul class="tags" aria-label="Tags">\n${items.join('\n')}\n</ul>\n`;
}
