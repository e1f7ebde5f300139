import type { Request, Response } from 'express';
import type { Post } from '../../shared/contract.js';
import { etagOf, isKnown } from './post-etag.js';

/** The pages of posts. */
export interface PostExport {
  /** Another one as soon as anything of a page changes that is not the post's; lowercase letters and digits, at most 16. */
  readonly edition: string;
  render(post: Post): Promise<PostPage>;
}

interface PostPage {
  html: string;
  /** The Content-Security-Policy that it needs. */
  csp: string;
  /** Whether the next that asks for this version of the post will get the same. */
  final: boolean;
}

type Representation = 'json' | 'markdown' | 'html';

/** In the order they are preferred where the client has no preference; a charset it asks for is the one it gets. */
const offered: Record<string, Representation> = {
  'application/json': 'json',
  'text/markdown': 'markdown',
  'text/markdown;charset=utf-8': 'markdown',
  'text/html': 'html',
  'text/html;charset=utf-8': 'html',
};

/**
 * Answers a read of a post in the representation that Accept asks for (RFC 9110, 12.5.1), or with 304 when the client
 * has it already. JSON is sent also when nothing fits: an error would help nobody.
 */
export async function sendPost(
  request: Request,
  response: Response,
  post: Post,
  pages: PostExport,
): Promise<void> {
  const representation = negotiate(request);
  const etag = etagOf(post, suffixes[representation](pages));
  const known = isKnown(request.get('If-None-Match'), etag);
  // Before any header is set: should it fail, the answer that says so must not have them.
  const { body, headers, final } = known ? unchanged : await represent[representation](post, pages);
  const validators = {
    ETag: etag,
    'Last-Modified': lastModified(post),
    'Cache-Control': cacheControl(request),
  };
  response.set({ ...headers, ...(final ? validators : notKept), Vary: 'Accept, Authorization' });
  if (known) response.status(304).end();
  else response.send(body);
}

/** The parser's time grows with the square of the length; browsers send a tenth of this. */
const maxAccept = 1000;

function negotiate(request: Request): Representation {
  if ((request.get('Accept')?.length ?? 0) > maxAccept) return 'json';
  const accepted = request.accepts(Object.keys(offered));
  return (accepted && offered[accepted]) || 'json';
}

/** What tells the entity tags of the representations apart. */
const suffixes: Record<Representation, (pages: PostExport) => string> = {
  json: () => '',
  markdown: () => '-md',
  html: ({ edition }) => `-html-${edition}`,
};

interface Represented {
  body: string | undefined;
  headers: Record<string, string>;
  final: boolean;
}

const unchanged: Represented = { body: undefined, headers: {}, final: true };
const notKept = { 'Cache-Control': 'no-store' };

const represent: Record<
  Representation,
  (post: Post, pages: PostExport) => Represented | Promise<Represented>
> = {
  json: (post) => ({
    body: JSON.stringify(post),
    headers: { 'Content-Type': 'application/json; charset=utf-8' },
    final: true,
  }),
  markdown: ({ content }) => ({
    body: content,
    headers: { 'Content-Type': 'text/markdown; charset=utf-8' },
    final: true,
  }),
  html: async (post, pages) => {
    const { html, csp, final } = await pages.render(post);
    const headers = {
      'Content-Type': 'text/html; charset=utf-8',
      'Content-Security-Policy': csp,
      // The address of a draft, or what a reader reads, is no concern of the hosts of images and links.
      'Referrer-Policy': 'no-referrer',
    };
    return { body: html, headers, final };
  },
};

/** The value of Last-Modified: whole seconds. */
export const lastModified = ({ updatedAt }: Post): string => new Date(updatedAt).toUTCString();

/** Always asked for again; what credentials have shown is not for everybody's cache. */
export const cacheControl = (request: Request): string =>
  request.headers.authorization === undefined ? 'public, no-cache' : 'private, no-cache';
