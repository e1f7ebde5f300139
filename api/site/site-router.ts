import { createHash } from 'node:crypto';
import { type RequestHandler, Router } from 'express';
import type { Config } from '../../shared/config/config.js';
import { release } from '../../shared/runtime/release.js';
import { sendPage } from '../blog/page-response.js';
import { isNotModified } from '../blog/post-etag.js';
import { prefersHtml } from '../http/accept.js';
import { methodNotAllowed } from '../http/problem.js';
import { favicon } from './favicon.js';
import { frontDocument, frontPage, type Site } from './front-page.js';
import type { ProviderStates } from './provider-states.js';

/** What the site is built from. */
export interface SiteDeps {
  config: Pick<Config, 'CHAT_BASE_URL' | 'BLOG_BASE_URL' | 'BLOG_TITLE'>;
  providerStates: () => Promise<ProviderStates>;
}

/** Serves what belongs to the whole server, without credentials: the front page, its icon, and `robots.txt`. */
export function siteRouter({ config, providerStates }: SiteDeps): Router {
  const paths = { chatPath: pathOf(config.CHAT_BASE_URL), blogPath: pathOf(config.BLOG_BASE_URL) };
  const site = { ...paths, release, blogTitle: config.BLOG_TITLE };
  const pages: Record<string, RequestHandler> = {
    '/': sendFront(async () => ({ ...site, providers: await providerStates() })),
    '/favicon.ico': sendFile(favicon, {
      'Content-Type': 'image/x-icon',
      'Cache-Control': 'public, max-age=86400',
    }),
    '/robots.txt': sendFile(Buffer.from(robots(site)), {
      'Content-Type': 'text/plain; charset=utf-8',
      'Cache-Control': 'public, max-age=3600',
    }),
  };
  const router = Router({ caseSensitive: true, strict: true });
  for (const [path, handler] of Object.entries(pages))
    router.route(path).get(handler).all(methodNotAllowed('GET, HEAD'));
  return router;
}

const pathOf = (base: string): string => new URL(base).pathname.replace(/\/+$/, '');

/** The states change by the second, so copies have to be checked. */
const frontHeaders = { 'Cache-Control': 'public, no-cache', Vary: 'Accept' };

function sendFront(look: () => Promise<Site>): RequestHandler {
  return async (request, response) => {
    const site = await look();
    if (prefersHtml(request)) sendPage(request, frontPage(site), frontHeaders);
    else response.set(frontHeaders).json(frontDocument(site));
  };
}

function sendFile(bytes: Buffer, headers: Readonly<Record<string, string>>): RequestHandler {
  const etag = `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 16)}"`;
  return (request, response) => {
    response.set({ ...headers, ETag: etag });
    if (isNotModified(request.get('If-None-Match'), etag)) response.status(304).end();
    else response.send(bytes);
  };
}

/** RFC 9309. Search results are endless, and the posts in them have addresses of their own. */
const robots = ({ blogPath }: Pick<Site, 'blogPath'>): string => `User-agent: *
Disallow: /admin
Disallow: ${blogPath}/blogs?q=
Disallow: ${blogPath}/blogs?*&q=
`;
