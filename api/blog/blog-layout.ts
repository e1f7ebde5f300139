import type { Request, RequestHandler, Response } from 'express';
import type { Config } from '../../shared/config/config.js';
import type { Post } from '../../shared/contracts/contract.js';
import { type Failure, failureKinds } from '../../shared/failures.js';
import { digestTag, sendDocument } from '../http/conditional.js';
import { areFailuresSentBy, requestIdOf, sendFailuresBy, setRetryAfter } from '../http/problem.js';
import { isUuid, prefersHtml } from '../http/query.js';
import { layOut, type Page, policyOf } from './page-layout.js';
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

/** Lays out a page that leads to the blog's index and to its feeds. */
export function layOutBlogPage(
  blog: Blog,
  { title, head, main }: { title: string; head: readonly string[]; main: string },
): string {
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

const readMethods: ReadonlySet<string> = new Set(['GET', 'HEAD']);

/** Answers failures below `/blogs` with a page, if `Accept` asks for one. Must come before anything can fail. */
export function failuresAsPages(blog: Blog): RequestHandler {
  return (request, response, next) => {
    const isPage = /^\/blogs(\/|$)/.test(request.path) && readMethods.has(request.method);
    if (isPage && prefersHtml(request))
      sendFailuresBy(response, (to, failure) => sendFailurePage(to, failure, blog));
    next();
  };
}

/** Answers an unknown address with a page if `Accept` asks for HTML; the clients of other APIs get their own errors. */
export const notFoundAsPage: RequestHandler = (request, response, next) => {
  if (readMethods.has(request.method) && prefersHtml(request) && !areFailuresSentBy(response))
    sendFailuresBy(response, sendNotFoundPage);
  next();
};

function sendNotFoundPage(response: Response, failure: Failure): void {
  const main = failureText(failure, requestIdOf(response));
  const header = '<a href="/">Quillgate</a>';
  const page = { title: 'Not found', language: 'en', head: [noIndex], header, main };
  sendHtml(response, failure, layOut(page));
}

function sendFailurePage(response: Response, failure: Failure, blog: Blog): void {
  const { title } = failureKinds[failure.code];
  const main = `<div${inEnglish(blog)}>\n${failureText(failure, requestIdOf(response))}</div>\n`;
  sendHtml(response, failure, layOutBlogPage(blog, { title, head: [noIndex], main }));
}

function sendHtml(response: Response, failure: Failure, html: string): void {
  setRetryAfter(response, failure);
  response.status(failure.status).set({ ...pageHeaders(policyOf(['none'])), Vary: 'Accept' });
  response.send(html);
}

/** The page repeats nothing of the request, as the problem does not. */
function failureText({ code, status, facts }: Failure, requestId: string): string {
  const { title, detail } = failureKinds[code];
  const errors = facts.errors ?? [];
  const items = errors.map(
    ({ pointer, detail }) => `<li><code>${escapeHtml(pointer)}</code> ${escapeHtml(detail)}</li>\n`,
  );
  return `<h1>${escapeHtml(title)}</h1>
<p>${escapeHtml(facts.detail ?? detail)}</p>
${items.length === 0 ? '' : `<ul>\n${items.join('')}</ul>\n`}<p class="about">${status} · Request ${escapeHtml(requestId)}</p>
`;
}

/** The headers of every page; the hosts of images and links must not learn which post is read. */
export const pageHeaders = (csp: string): Record<string, string> => ({
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy': csp,
  'Referrer-Policy': 'no-referrer',
});

/** Answers with the page, or with 304 when the client's copy is the same. `headers` say who may keep it. */
export const sendPage = (
  request: Request,
  { html, csp }: Page,
  headers: Readonly<Record<string, string>>,
): Promise<void> =>
  sendDocument(request, {
    validators: { ETag: digestTag(csp + html) },
    headers,
    content: () => ({ body: html, headers: pageHeaders(csp) }),
  });
