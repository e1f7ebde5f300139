import { createHash } from 'node:crypto';
import type { Post } from '../../shared/contract.js';
import { layOut, policyOf } from './page-layout.js';
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

interface PostPageParts {
  post: Post;
  blogTitle: string;
  content: string;
}

function pageOf({ post, blogTitle, content }: PostPageParts): string {
  const title = post.title?.trim();
  const titleAbove = title && !beginsWithTitle(content, title);
  return layOut({
    title: `${headingOf(post, content)} – ${blogTitle}`,
    language: 'en',
    head: [`<meta name="author" content="${escapeHtml(post.author)}">`],
    header: escapeHtml(blogTitle),
    main: `<article>
${titleAbove ? `<h1 dir="auto">${escapeHtml(title)}</h1>\n` : ''}<p class="about">${aboutOf(post)}</p>
<div dir="auto">
${content}
</div>
${tagsOf(post.tags)}</article>
`,
  });
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
