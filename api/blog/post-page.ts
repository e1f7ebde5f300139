import { createHash } from 'node:crypto';
import type { Post } from '../../shared/contracts/contract.js';
import {
  type Blog,
  canonicalLink,
  layOutBlogPage,
  noIndex,
  postPath,
  tagList,
  timeElement,
} from './blog-layout.js';
import { type Page, policyOf } from './page-layout.js';
import type { FindExcerpts } from './rendering/excerpts.js';
import { beginsWithTitle, escapeHtml, excerptOf, rendererVersion } from './rendering/markdown.js';
import type { RenderedPost, RenderPost } from './rendering/rendered-posts.js';

/** The HTML pages of posts. */
export type PostPages = ReturnType<typeof createPostPages>;

interface PostPagesDeps {
  blog: Blog;
  /** Where images may come from: `https` (any host), `none`, or hosts. */
  images: readonly string[];
  render: RenderPost;
  excerpts: FindExcerpts;
}

/** Makes the pages of posts: HTML documents without scripts that load nothing but images. */
export function createPostPages({ blog, images, render, excerpts }: PostPagesDeps) {
  const csp = policyOf(images);
  return {
    /** Changes whenever anything on a page but the post changes; lowercase letters and digits, at most 16. */
    edition: editionOf(blog, csp),
    /** `final`: whether rendering this version of the post again gives the same page. */
    async render(post: Post): Promise<Page & Pick<RenderedPost, 'final'>> {
      const beginning = { ...post, beginning: post.content };
      const [{ html: content, final }, [excerpt]] = await Promise.all([render(post), excerpts([beginning])]);
      const html = pageOf({ post: { ...post, excerpt: excerpt ?? '' }, blog, content });
      return { html, csp, final: final && excerpt !== undefined };
    },
  };
}

/** Includes a sample page, so that a change of the template changes the edition. */
function editionOf(blog: Blog, csp: string): string {
  const page = pageOf({ post: samplePost, blog, content: '' });
  const facts = JSON.stringify([rendererVersion, csp, page]);
  return createHash('sha256').update(facts).digest('hex').slice(0, 8);
}

/** With the beginning of its text as plain text. */
type ExcerptPost = Post & { excerpt: string };

/** A post with every part that a page can show. */
const samplePost: ExcerptPost = {
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
  excerpt: 'Excerpt',
};

/** The heading of a post: its title, else the beginning of its text, else (for a text without words) its date. */
export function headingOf(post: Post, content: string, blog: Pick<Blog, 'formatDay'>): string {
  return post.title?.trim() || excerptOf(content) || blog.formatDay(post.publishedAt ?? post.createdAt);
}

function pageOf({ post, blog, content }: { post: ExcerptPost; blog: Blog; content: string }): string {
  const title = post.title?.trim();
  const titleAbove = title && !beginsWithTitle(content, title);
  const heading = headingOf(post, content, blog);
  return layOutBlogPage(blog, {
    title: heading,
    head: headOf(post, blog, heading),
    main: `<article>
${titleAbove ? `<h1 dir="auto">${escapeHtml(title)}</h1>\n` : ''}<p class="about">${aboutOf(post, blog)}</p>
<div dir="auto">
${content}
</div>
${tagList(blog, post.tags)}</article>
`,
  });
}

/** With Open Graph (https://ogp.me), for sharing; drafts have none, since they should not be found. */
function headOf(post: ExcerptPost, blog: Blog, heading: string): string[] {
  const author = `<meta name="author" content="${escapeHtml(post.author)}">`;
  if (post.status === 'draft') return [author, noIndex];
  const { excerpt } = post;
  const url = blog.baseUrl + postPath(post);
  const properties = [
    ['og:type', 'article'],
    ['og:title', heading],
    ['og:site_name', blog.title],
    ['og:url', url],
    ...(excerpt === '' ? [] : [['og:description', excerpt]]),
    ['article:published_time', post.publishedAt ?? post.createdAt],
    ['article:modified_time', post.updatedAt],
    ...post.tags.map((tag) => ['article:tag', tag]),
  ];
  return [
    author,
    ...(excerpt === '' ? [] : [`<meta name="description" content="${escapeHtml(excerpt)}">`]),
    canonicalLink(url),
    ...properties.map(
      ([property = '', content = '']) => `<meta property="${property}" content="${escapeHtml(content)}">`,
    ),
  ];
}

function aboutOf({ author, status, publishedAt }: Post, blog: Blog): string {
  const name = `<bdi>${escapeHtml(author)}</bdi>`;
  if (status === 'draft') return `${name} · Draft`;
  return publishedAt === null ? name : `${name} · ${timeElement(blog, publishedAt)}`;
}
