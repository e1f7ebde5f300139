import type { Request } from 'express';
import type { PostSummary } from '../../db/posts/post-lists.js';
import type { PostStore, SummaryPage } from '../../db/posts/post-store.js';
import {
  type Blog,
  canonicalLink,
  indexPath,
  inEnglish,
  layOutBlogPage,
  noIndex,
  postPath,
  sendPage,
  tagList,
  timeElement,
} from './blog-layout.js';
import { type Page, policyOf } from './page-layout.js';
import {
  type PostQuery,
  type PostQueryValues,
  queryOf,
  toCursor,
  toNewerCursor,
  toPostFilter,
} from './post-query.js';
import { negotiatedHeaders } from './post-representations.js';
import type { FindExcerpts } from './rendering/excerpts.js';
import { escapeHtml } from './rendering/markdown.js';

/** On a page, unless its address names another number. */
const postsPerPage = 20;

/** More in one page would keep its readers waiting for excerpts; the address of a longer one leads on after these. */
const maxPostsPerPage = 50;

/** Answers with the requested page of posts, never with drafts. */
export async function sendIndex(
  request: Request,
  checked: PostQuery,
  { blog, posts, excerpts }: { blog: Blog; posts: Pick<PostStore, 'summaries'>; excerpts: FindExcerpts },
): Promise<[]> {
  const { tag, author, q, status, cursor } = checked;
  // The generated check has put the default of the JSON list where there was no limit.
  const isLimited = request.query.limit !== undefined;
  const limit = Math.min(maxPostsPerPage, (isLimited ? checked.limit : undefined) ?? postsPerPage);
  const query = { tag, author, q, status, limit: isLimited ? limit : undefined, cursor };
  const filter = toPostFilter({ ...query, limit });
  const page = await posts.summaries(filter);
  const found = await excerpts(page.posts);
  const listed = page.posts.map((post, place) => ({ ...post, excerpt: found[place] ?? '' }));
  const index = { query, leadsBack: filter.before !== undefined, posts: listed };
  const html = indexPage(blog, { ...index, ...neighboursOf(page, { query, limit }) });
  await sendPage(request, html, negotiatedHeaders(request));
  // For the document only: the answer has already been sent.
  return [];
}

type IndexQuery = Omit<PostQueryValues, 'envelope'>;

interface PostIndex extends NeighbourPages {
  query: IndexQuery;
  /** Whether its address leads from older posts to newer ones: other addresses have the same posts. */
  leadsBack: boolean;
  posts: readonly ListedPost[];
}

/** The excerpt is empty where there was no time to make it. */
type ListedPost = PostSummary & { excerpt: string };

/** Queries of the previous and the next page; undefined at the end. */
interface NeighbourPages {
  newer: string | undefined;
  older: string | undefined;
}

/** The pages beside one: that with the newest posts has the address of the index itself, however many they are. */
function neighboursOf(
  { ends, beyond }: SummaryPage,
  { query, limit }: { query: IndexQuery; limit: number },
): NeighbourPages {
  if (!ends) return { newer: undefined, older: undefined };
  const cursor = beyond.newer > limit ? toNewerCursor(ends.newest) : undefined;
  return {
    newer: beyond.newer > 0 ? queryOf({ ...query, cursor }) : undefined,
    older: beyond.older ? queryOf({ ...query, cursor: toCursor(ends.oldest) }) : undefined,
  };
}

function indexPage(blog: Blog, index: PostIndex): Page {
  const { query, posts } = index;
  const heading = headingOf(blog, query);
  const html = layOutBlogPage(blog, {
    title: heading,
    head: headOf(blog, index, heading),
    main: `<h1 dir="auto">${escapeHtml(heading)}</h1>
${searchBox(blog, query.q)}${posts.length === 0 ? `<p${inEnglish(blog)}>${nothing(index)}</p>\n` : listOf(blog, posts)}${pager(blog, index)}`,
  });
  return { html, csp: policyOf(['none'], { formAction: "'self'" }) };
}

function headingOf(blog: Blog, { tag, author, q }: IndexQuery): string {
  const filters = [
    ...(q?.trim() ? [`Search: ${q.trim()}`] : []),
    ...(tag === undefined ? [] : [`Tag: ${tag}`]),
    ...(author === undefined ? [] : [`Author: ${author}`]),
  ];
  return filters.join(', ') || blog.title;
}

/** Search results, pages that lead back, and pages of drafts are not indexed; other pages are canonical. */
function headOf(blog: Blog, { query, leadsBack }: PostIndex, heading: string): string[] {
  const { q, status, tag, author, cursor } = query;
  if (q?.trim() || leadsBack || status === 'draft') return [noIndex];
  const url = `${blog.baseUrl}/blogs`;
  const own = queryOf({ tag, author, cursor });
  const canonical = own === '' ? url : `${url}?${own}`;
  return [
    canonicalLink(canonical),
    '<meta property="og:type" content="website">',
    `<meta property="og:title" content="${escapeHtml(heading)}">`,
    `<meta property="og:site_name" content="${escapeHtml(blog.title)}">`,
    `<meta property="og:url" content="${escapeHtml(canonical)}">`,
  ];
}

const searchBox = (
  blog: Blog,
  q = '',
): string => `<form role="search" action="${escapeHtml(indexPath(blog))}"${inEnglish(blog)}>
<label for="q">Search the posts</label>
<input type="search" id="q" name="q" maxlength="500" value="${escapeHtml(q)}" dir="auto">
<button>Search</button>
</form>
`;

function nothing({ query: { cursor, tag, author, q, status }, leadsBack }: PostIndex): string {
  if (tag || author || q?.trim() || status === 'draft') return 'Nothing was found.';
  if (cursor === undefined) return 'There are no posts.';
  return `There are no ${leadsBack ? 'newer' : 'older'} posts.`;
}

function listOf(blog: Blog, posts: readonly ListedPost[]): string {
  return `<ol class="posts">\n${posts.map((post) => `<li>\n${itemOf(blog, post)}</li>\n`).join('')}</ol>\n`;
}

function itemOf(blog: Blog, { excerpt, ...post }: ListedPost): string {
  const heading = post.title?.trim() || excerpt || blog.formatDay(post.publishedAt);
  const text = post.title?.trim() ? excerpt : '';
  return `<h2 dir="auto"><a href="${escapeHtml(blog.basePath + postPath(post))}">${escapeHtml(heading)}</a></h2>
<p class="about"><bdi>${escapeHtml(post.author)}</bdi> · ${timeElement(blog, post.publishedAt)}</p>
${text === '' ? '' : `<p dir="auto">${escapeHtml(text)}</p>\n`}${tagList(blog, post.tags)}`;
}

function pager(blog: Blog, { query, newer, older }: PostIndex): string {
  const newest = queryOf({ ...query, cursor: undefined });
  const links = [
    ...(query.cursor === undefined || newer === newest
      ? []
      : [pageLink(indexPath(blog, newest), 'Newest posts')]),
    ...(newer === undefined ? [] : [pageLink(indexPath(blog, newer), 'Newer posts', ' rel="prev"')]),
    ...(older === undefined ? [] : [pageLink(indexPath(blog, older), 'Older posts', ' rel="next"')]),
  ];
  return links.length === 0
    ? ''
    : `<nav class="pages" aria-label="Pages"${inEnglish(blog)}>${links.join(' ')}</nav>\n`;
}

const pageLink = (href: string, text: string, relation = ''): string =>
  `<a${relation} href="${escapeHtml(href)}">${text}</a>`;
