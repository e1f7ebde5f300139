import type { Request } from 'express';
import type { Change, Removal, Unchanged } from '../../db/posts/post-changes.js';
import type { PostRevision } from '../../db/posts/post-rows.js';
import type { Post } from '../../shared/contracts/contract.js';
import { Failure } from '../../shared/failures.js';
import { invalid } from '../../shared/validation.js';
import type { ReaderRequest } from '../access/caller.js';
import { type Content, parseTags, sendDocument, tagAsSent } from '../http/conditional.js';
import { isUuid, preferredOf } from '../http/query.js';
import { type Blog, basePathOf, pageHeaders, postPath } from './blog-layout.js';
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

/**
 * The strong entity tag (RFC 9110, 8.8.3) of a version of a post: as JSON, or with the suffix `-md` or
 * `-html-<edition of the page>` as another representation.
 */
export function etagOf({ version, updatedAt }: PostRevision, suffix = ''): string {
  return `"${version}-${Date.parse(updatedAt).toString(36)}${suffix}"`;
}

/**
 * The versions in `If-Match` (RFC 9110, 13.1.1), one of which must be current for a write; undefined when any will do.
 * The tag of any representation stands for its version, also as a weak tag: RFC 9110 lets only strong ones match, but a
 * version stays the same however a proxy compresses it, and behind such a proxy no write could succeed otherwise.
 * Throws `invalid_request` unless the header is a list of tags.
 */
export function expectedVersions(ifMatch: string | undefined): readonly PostRevision[] | undefined {
  if (ifMatch === undefined) return undefined;
  const tags = parseTags(ifMatch);
  if (tags === undefined) throw invalid('If-Match', 'must be * or a list of entity tags');
  return tags === '*' ? undefined : tags.flatMap(toVersion);
}

/** The result of a write that happened. Throws `not_found`, or `precondition_failed` with the post's current tag. */
export function requireSuccess<Result extends Change | Removal>(result: Result): Exclude<Result, Unchanged> {
  if (result.kind === 'missing') throw new Failure('not_found');
  if (result.kind === 'stale')
    throw new Failure('precondition_failed', { headers: { ETag: etagOf(result.current) } });
  return result as Exclude<Result, Unchanged>;
}

/** A tag that this server never sent matches no version. */
function toVersion(tag: string): PostRevision[] {
  const [, version, milliseconds] =
    /^"([1-9]\d{0,9})-(-?[0-9a-z]{1,10})(?:-md|-html(?:-[0-9a-z]{1,16})?)?"$/.exec(tagAsSent(tag)) ?? [];
  if (version === undefined || milliseconds === undefined) return [];
  const updatedAt = new Date(Number.parseInt(milliseconds, 36)).toISOString();
  // PostgreSQL cannot read values beyond these, and no post has them.
  if (Number(version) > maxInteger || !/^(?!0000)\d{4}-/.test(updatedAt)) return [];
  return [{ version: Number(version), updatedAt }];
}

const maxInteger = 2 ** 31 - 1;
