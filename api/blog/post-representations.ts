import type { Request } from 'express';
import type { Post } from '../../shared/contracts/contract.js';
import type { ReaderRequest } from '../access/caller.js';
import { preferredOf } from '../http/accept.js';
import { type Content, sendDocument } from '../http/conditional.js';
import { isUuid } from '../http/uuid-param.js';
import { type Blog, basePathOf, postPath } from './blog-layout.js';
import { pageHeaders } from './page-response.js';
import { etagOf } from './post-etag.js';
import type { PostPages } from './post-page.js';

type Representation = 'json' | 'markdown' | 'html';

/** In the order of the server's preference. The entries with a charset match clients that ask for it. */
const offered: Record<string, Representation> = {
  'application/json': 'json',
  'text/markdown': 'markdown',
  'text/markdown;charset=utf-8': 'markdown',
  'text/html': 'html',
  'text/html;charset=utf-8': 'html',
};

/**
 * Answers a read of a post, as `sendPost`. A slug that the post had before leads to the present one (308). That is for
 * good, but not to be kept unasked: another post may take the slug.
 */
export async function sendFound(
  request: Request,
  post: Post,
  { blog, pages }: { blog: Blog; pages: PostPages },
): Promise<void> {
  const { id } = request.params;
  if (id === post.slug || isUuid(`${id}`)) return sendPost(request, post, pages);
  const Location = basePathOf(request, blog) + postPath(post);
  request.res
    ?.set({ ...negotiatedHeaders(request), Location })
    .status(308)
    .end();
}

/**
 * Answers a read of a post in the representation that `Accept` asks for (RFC 9110, 12.5.1), or with 304 when the
 * client's copy is current. Sends JSON when nothing matches, because an error would not help the client.
 */
export async function sendPost(request: Request, post: Post, pages: PostPages): Promise<void> {
  const representation = preferredOf(request, offered) ?? 'json';
  await sendDocument(request, {
    validators: validatorsOf(post, etagOf(post, suffixes[representation](pages))),
    headers: negotiatedHeaders(request),
    content: () => represent[representation](post, pages),
  });
}

const suffixes: Record<Representation, (pages: PostPages) => string> = {
  json: () => '',
  markdown: () => '-md',
  html: ({ edition }) => `-html-${edition}`,
};

const represent: Record<Representation, (post: Post, pages: PostPages) => Content | Promise<Content>> = {
  json: (post) => ({
    body: JSON.stringify(post),
    headers: { 'Content-Type': 'application/json; charset=utf-8' },
  }),
  markdown: ({ content }) => ({
    body: content,
    headers: { 'Content-Type': 'text/markdown; charset=utf-8' },
  }),
  html: async (post, pages) => {
    const { html, csp, final } = await pages.render(post);
    return { body: html, headers: pageHeaders(csp), isProvisional: !final };
  },
};

/** Returns a post that was written, for the generated route to send as JSON, and sets its validators. */
export function answerWrite(request: Request, post: Post): Post {
  request.res?.set(validatorsOf(post));
  return post;
}

/** By default of the post's JSON. `Last-Modified` has whole seconds. */
const validatorsOf = (post: Post, etag = etagOf(post)) => ({
  ETag: etag,
  'Last-Modified': new Date(post.updatedAt).toUTCString(),
});

/** Caches must always revalidate, and shared caches must not store answers to requests with credentials. */
export const cacheHeaders = (request: ReaderRequest) => ({
  'Cache-Control': isAnonymous(request) ? 'public, no-cache' : 'private, no-cache',
  Vary: 'Authorization',
});

const isAnonymous = ({ headers, user }: ReaderRequest): boolean =>
  headers.authorization === undefined && user === undefined;

/** The headers of what `Accept` decides about. */
export const negotiatedHeaders = (request: ReaderRequest) => ({
  ...cacheHeaders(request),
  Vary: 'Accept, Authorization',
});
