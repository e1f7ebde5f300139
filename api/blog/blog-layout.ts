import type { Request } from 'express';
import type { Config } from '../../shared/config/config.js';
import type { Post } from '../../shared/contracts/contract.js';
import { isUuid } from '../http/uuid-param.js';
import { layOut } from './page-layout.js';
import { escapeHtml } from './rendering/markdown.js';

/** The blog that pages and feeds belong to. */
export interface Blog {
  title: string;
  /** Public base address, without a trailing slash. */
  baseUrl: string;
  /** Its path, without a trailing slash. */
  basePath: string;
  /** BCP 47 tag of the language that posts are written in. */
  language: string;
  /** A time's day in that language, in UTC. */
  formatDay: (time: string) => string;
}

/** The blog of this configuration, whose base address may end with slashes. */
export function blogOf({
  BLOG_TITLE: title,
  BLOG_BASE_URL: baseUrl,
  BLOG_LANGUAGE: language,
}: Pick<Config, 'BLOG_TITLE' | 'BLOG_BASE_URL' | 'BLOG_LANGUAGE'>): Blog {
  // Made once: each takes a tenth of a millisecond, and memory that is long in coming back.
  const days = new Intl.DateTimeFormat(language, { dateStyle: 'long', timeZone: 'UTC' });
  return {
    title,
    baseUrl: baseUrl.replace(/\/+$/, ''),
    basePath: new URL(baseUrl).pathname.replace(/\/+$/, ''),
    language,
    formatDay: (time) => days.format(new Date(time)),
  };
}

/** A page of the blog before it is laid out. */
export interface BlogPageParts {
  title: string;
  head: readonly string[];
  main: string;
}

/** Lays out a page that leads to the blog's index and to its feeds. */
export function layOutBlogPage(blog: Blog, { title, head, main }: BlogPageParts): string {
  const feeds = [
    ['application/atom+xml', '/feed.xml', 'Atom feed'],
    ['application/feed+json', '/feed.json', 'JSON feed'],
  ] as const;
  const links = feeds.map(([, path, name]) => `<a href="${escapeHtml(blog.basePath + path)}">${name}</a>`);
  return layOut({
    title: title === blog.title ? title : `${title} – ${blog.title}`,
    language: blog.language,
    head: [
      ...head,
      ...feeds.map(
        ([type, path]) =>
          `<link rel="alternate" type="${type}" title="${escapeHtml(blog.title)}" href="${escapeHtml(blog.baseUrl + path)}">`,
      ),
    ],
    header: `<a href="${escapeHtml(indexPath(blog))}">${escapeHtml(blog.title)}</a>`,
    main,
    footer: `<p${inEnglish(blog)}>${links.join(' · ')}</p>`,
  });
}

/** The attribute of an element whose text is ours, in English, on a page in another language. */
export const inEnglish = ({ language }: Blog): string => (/^en\b/i.test(language) ? '' : ' lang="en"');

/** Path of the index, with a filter if there is one. */
export const indexPath = ({ basePath }: Blog, query = ''): string =>
  `${basePath}/blogs${query === '' ? '' : `?${query}`}`;

/** Encoded path of a post, relative to the blog's base: by its slug, unless that looks like the id of another post. */
export const postPath = ({ id, slug }: Pick<Post, 'id' | 'slug'>): string =>
  `/blogs/${isUuid(slug) ? id : encodeURIComponent(slug)}`;

/** The path below which the request found the blog: operators have it in another place. */
export const basePathOf = ({ res }: Request, { basePath }: Pick<Blog, 'basePath'>): string =>
  res?.locals.basePath ?? basePath;

/** The canonical address of a page, for search engines and for sharing. */
export const canonicalLink = (url: string): string => `<link rel="canonical" href="${escapeHtml(url)}">`;

/** Asks search engines to leave a page out. */
export const noIndex = '<meta name="robots" content="noindex">';

/** Tags as links to their pages; empty without any. */
export function tagList(blog: Blog, tags: readonly string[]): string {
  if (tags.length === 0) return '';
  const items = tags.map((tag) => {
    const href = indexPath(blog, new URLSearchParams({ tag }).toString());
    return `<li dir="auto"><a rel="tag" href="${escapeHtml(href)}">${escapeHtml(tag)}</a></li>`;
  });
  return `<ul class="tags" aria-label="Tags">\n${items.join('\n')}\n</ul>\n`;
}

/** The day as an element that programs can read as well. */
export const timeElement = (blog: Blog, time: string): string =>
  `<time datetime="${escapeHtml(time)}">${escapeHtml(blog.formatDay(time))}</time>`;
