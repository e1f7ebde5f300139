import type { Request, Response } from 'express';
import type { Post } from '../shared/contract.js';
import { etagOf, isKnown, type Representation } from './preconditions.js';

/** Makes the page of a post, and the Content-Security-Policy that it needs. */
export type RenderPage = (post: Post) => { html: string; csp: string };

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
export function sendPost(request: Request, response: Response, post: Post, renderPage: RenderPage): void {
  const accepted = request.accepts(Object.keys(offered));
  const representation = (accepted && offered[accepted]) || 'json';
  const etag = etagOf(post, representation);
  const known = isKnown(request.get('If-None-Match'), etag);
  // Before any header is set: should it fail, the answer that says so must not have them.
  const { body, headers } = known
    ? { body: undefined, headers: {} }
    : represent[representation](post, renderPage);
  response.set({
    ...headers,
    ETag: etag,
    'Last-Modified': lastModified(post),
    'Cache-Control': cacheControl(request),
    Vary: 'Accept, Authorization',
  });
  if (known) response.status(304).end();
  else response.send(body);
}

interface Represented {
  body: string;
  headers: Record<string, string>;
}

const represent: Record<Representation, (post: Post, renderPage: RenderPage) => Represented> = {
  json: (post) => ({
    body: JSON.stringify(post),
    headers: { 'Content-Type': 'application/json; charset=utf-8' },
  }),
  markdown: ({ content }) => ({ body: content, headers: { 'Content-Type': 'text/markdown; charset=utf-8' } }),
  html: (post, renderPage) => {
    const { html, csp } = renderPage(post);
    const headers = { 'Content-Type': 'text/html; charset=utf-8', 'Content-Security-Policy': csp };
    return { body: html, headers };
  },
};

/** The value of Last-Modified: whole seconds. */
export const lastModified = ({ updatedAt }: Post): string => new Date(updatedAt).toUTCString();

/** Always asked for again; what credentials have shown is not for everybody's cache. */
export const cacheControl = (request: Request): string =>
  request.headers.authorization === undefined ? 'public, no-cache' : 'private, no-cache';
