import type { Request } from 'express';
import type { PostStore } from '../../db/posts/post-store.js';
import type { PostSummary } from '../../db/posts/post-summaries.js';
import {
  type Blog,
  canonicalLink,
  indexPath,
  inEnglish,
  layOutBlogPage,
  noIndex,
  tagList,
  timeElement,
} from './blog-layout.js';
import { type Page, policyOf } from './page-layout.js';
import { sendPage } from './page-response.js';
import { postPath } from './post-address.js';
import { nextQuery, type PostQuery, toCursor, toPostFilter } from './post-query.js';
import { negotiatedHeaders } from './post-representations.js';
import { escapeHtml } from './rendering/markdown.js';
import { excerptOfMarkdown } from './rendering/markdown-excerpt.js';

/** On a page, unless its address names another number. */
const postsPerPage = 20;

/** Answers with the page of the posts that were asked for, without drafts, whoever asks. */
export async function sendIndex(
  request: Request,
  checked: PostQuery,
  { blog, posts }: { blog: Blog; posts: Pick<PostStore, 'summaries'> },
): Promise<[]> {
  const { tag, author, q, cursor, limit } = checked;
  // The generated check has put the default of the JSON list where there was no limit.
  const isLimited = request.query.limit !== undefined;
  const query = present({ tag, author, q, cursor, limit: isLimited ? limit : undefined });
  const page = await posts.summaries(toPostFilter({ limit: postsPerPage, ...query }, { drafts: false }));
  const older = page.next ? nextQuery(query, toCursor(page.next)) : undefined;
  sendPage(request, indexPage(blog, { query, posts: page.posts, older }), negotiatedHeaders(request));
  // For the document only: the answer has already been sent.
  return [];
}

type IndexQuery = Omit<PostQuery, 'envelope'>;

/** The parameters that were sent. */
const present = (values: { [Name in keyof IndexQuery]: IndexQuery[Name] | undefined }): IndexQuery =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));

/** What a page of the index shows. */
interface PostIndex {
  /** What the posts were asked for. */
  query: IndexQuery;
  posts: readonly PostSummary[];
  /** Query of the page with older posts; undefined on the last one. */
  older: string | undefined;
}

/** The page of a list of posts, newest first, with a search box. */
function indexPage(blog: Blog, { query, posts, older }: PostIndex): Page {
  const heading = headingOf(blog, query);
  const html = layOutBlogPage(blog, {
    title: heading,
    head: headOf(blog, query, heading),
    main: `<h1 dir="auto">${escapeHtml(heading)}</h1>
${searchBox(blog, query.q)}${posts.length === 0 ? `<p${inEnglish(blog)}>${nothing(query)}</p>\n` : listOf(blog, posts)}${pager(blog, query, older)}`,
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

/** Search results change and are endless; the canonical address of every other page is its own. */
function headOf(blog: Blog, { q, limit: _, ...query }: IndexQuery, heading: string): string[] {
  if (q?.trim()) return [noIndex];
  const url = `${blog.baseUrl}/blogs`;
  const own = new URLSearchParams(query).toString();
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

const nothing = ({ cursor, tag, author, q }: IndexQuery): string =>
  tag || author || q?.trim() ? 'Nothing was found.' : `There are no ${cursor ? 'older ' : ''}posts.`;

function listOf(blog: Blog, posts: readonly PostSummary[]): string {
  return `<ol class="posts">\n${posts.map((post) => `<li>\n${itemOf(blog, post)}</li>\n`).join('')}</ol>\n`;
}

function itemOf(blog: Blog, post: PostSummary): string {
  const excerpt = excerptOfMarkdown(post.beginning, post.title);
  const heading = post.title?.trim() || excerpt || blog.formatDay(post.publishedAt);
  const text = post.title?.trim() ? excerpt : '';
  return `<h2 dir="auto"><a href="${escapeHtml(blog.basePath + postPath(post))}">${escapeHtml(heading)}</a></h2>
<p class="about"><bdi>${escapeHtml(post.author)}</bdi> · ${timeElement(blog, post.publishedAt)}</p>
${text === '' ? '' : `<p dir="auto">${escapeHtml(text)}</p>\n`}${tagList(blog, post.tags)}`;
}

function pager(blog: Blog, { cursor, ...filters }: IndexQuery, older: string | undefined): string {
  const newest = new URLSearchParams(
    Object.entries(filters).map(([name, value]): [string, string] => [name, String(value)]),
  ).toString();
  const links = [
    ...(cursor === undefined ? [] : [`<a href="${escapeHtml(indexPath(blog, newest))}">Newest posts</a>`]),
    ...(older === undefined
      ? []
      : [`<a rel="next" href="${escapeHtml(indexPath(blog, older))}">Older posts</a>`]),
  ];
  return links.length === 0
    ? ''
    : `<nav class="pages" aria-label="Pages"${inEnglish(blog)}>${links.join(' ')}</nav>\n`;
}
