import { type RequestHandler, Router } from 'express';
import type { Config } from '../../shared/config/config.js';
import { Failure } from '../../shared/failures.js';
import { release } from '../../shared/runtime/program.js';
import { expressAuthentication } from '../access/authentication.js';
import { sendPage } from '../blog/blog-layout.js';
import { cacheHeaders } from '../blog/post-representations.js';
import { documentsRouter, sendBytes, sendFile } from '../http/conditional.js';
import { methodNotAllowed } from '../http/problem.js';
import { prefersHtml } from '../http/query.js';
import { frontDocument, frontPage, type Site, type SiteApi, type Sitemap } from './front-page.js';
import type { ProviderStates } from './provider-states.js';

/** The dependencies of the site. */
export interface SiteDeps {
  config: Pick<Config, 'CHAT_BASE_URL' | 'BLOG_BASE_URL' | 'BLOG_TITLE' | 'BLOG_READS'>;
  providerStates: () => Promise<ProviderStates>;
}

/** Serves what belongs to the whole server, without credentials: the front page, its icon, and `robots.txt`. */
export function siteRouter({ config, providerStates }: SiteDeps, apis: readonly SiteApi[]): Router {
  const paths = { chatPath: pathOf(config.CHAT_BASE_URL), blogPath: pathOf(config.BLOG_BASE_URL) };
  const chatUrl = `${config.CHAT_BASE_URL.replace(/\/+$/, '')}/chat`;
  const site = { ...paths, chatUrl, release, blogTitle: config.BLOG_TITLE, apis };
  return documentsRouter({
    '/': sendFront(async () => ({ ...site, providers: await providerStates() })),
    '/favicon.ico': sendFile(favicon, {
      'Content-Type': 'image/x-icon',
      'Cache-Control': 'public, max-age=86400',
    }),
    '/robots.txt': sendFile(Buffer.from(robots(config)), {
      'Content-Type': 'text/plain; charset=utf-8',
      'Cache-Control': 'public, max-age=3600',
    }),
  });
}

const pathOf = (base: string): string => new URL(base).pathname.replace(/\/+$/, '');

/** The states change by the second, so copies have to be checked. */
const frontHeaders = { 'Cache-Control': 'public, no-cache', Vary: 'Accept' };

function sendFront(look: () => Promise<Site>): RequestHandler {
  return async (request, response) => {
    const site = await look();
    if (prefersHtml(request)) await sendPage(request, frontPage(site), frontHeaders);
    else response.set(frontHeaders).json(frontDocument(site));
  };
}

/** Serves the sitemap below the blog's base path, to clients that may read the posts. */
export function sitemapRouter(
  basePath: string,
  sitemap: Pick<Sitemap, 'find'>,
  before: readonly RequestHandler[],
): Router {
  const router = Router({ caseSensitive: true, strict: true });
  router
    .route(`${basePath}/sitemap.xml`)
    .all(...before)
    .get(async (request) => {
      await expressAuthentication(request, 'bearer', ['blogs:read']);
      const { part } = request.query;
      if (part !== undefined && !/^[1-9]\d{0,5}$/.test(`${part}`)) throw new Failure('not_found');
      const document = await sitemap.find(part === undefined ? undefined : Number(part));
      if (document === undefined) throw new Failure('not_found');
      await sendBytes(request, document, {
        'Content-Type': 'application/xml; charset=utf-8',
        ...cacheHeaders(request),
      });
    })
    .all(methodNotAllowed('GET, HEAD'));
  return router;
}

/** RFC 9309. Search results are endless, and the posts in them have addresses of their own. */
const robots = ({ BLOG_BASE_URL, BLOG_READS }: SiteDeps['config']): string =>
  [
    'User-agent: *',
    'Disallow: /admin',
    `Disallow: ${pathOf(BLOG_BASE_URL)}/blogs?q=`,
    `Disallow: ${pathOf(BLOG_BASE_URL)}/blogs?*&q=`,
    ...(BLOG_READS === 'public' ? [`Sitemap: ${BLOG_BASE_URL.replace(/\/+$/, '')}/sitemap.xml`] : []),
    '',
  ].join('\n');

/** The icon of the site: a white Q on blue, of 16 and of 32 pixels, as an ICO file of two PNG images. */
const favicon = Buffer.from(
  'AAABAAIAEBAAAAEAIAA2AQAAJgAAACAgAAABACAAVQIAAFwBAACJUE5HDQoaCgAAAA1JSERSAAAAEAAAABAIBgAAAB/z/2EAAAD9' +
    'SURBVHjaY+AOv8AAxAFAfB6I/xOJz0P1MMA0/ycTBzDgslks/tJ/l7rbYAxi43IJAzaJqsVP/3/5/vc/DIDYIDFsajEM6Fz3Aq7x' +
    '7vMfYAwDIDm8BmjlXPv/+88/MI6f+AAuDmLDxEFqcBoAciYIzNjxGsMmkBgIoHsFxYAFe9+CFaVNe4RhAEgMBEBqcBrQu+ElVltA' +
    'eM7uN2A5kBqcBvi03AErevDq53+l9Ctw8SnbXsEDEqQGbywcu/EFrPDJ219g21Yfff8fGZQteIrfAJDNFx98+48PIBuCNSHxR10E' +
    'Rx3I3yAMYsNiCJsBRGcikEY0L5ynSmaiKDsDANt+iadPHDGQAAAAAElFTkSuQmCCiVBORw0KGgoAAAANSUhEUgAAACAAAAAgCAYA' +
    'AABzenr0AAACHElEQVR42mPgDr/AgIQFgLgCiI8D8Xcg/k8l/B1qZgXUDridyJa7APFrKlqKC7+G2oXiAJDAbzpYDsO/YY6ABftr' +
    'OlqOHBICDNB4+T9AuIIBmjhI0mhacuN/2YKn/1tXvwBjEBskRoYDjjOQktoD2u7+v/jg239cACQHUkNK7mAgRiF/1MX/M3a8/k8s' +
    'AKkF6SHGbKIcsPzwu/+kApAeqjigaN4TrBbcff4DbAkIg9jYAEgvRQ6QSrr8/8OXPyiGvnj/+79Pyx0MtSAxkBwyAOkFmUG2A6oW' +
    'P0Ux8M2n3/8NC6/jVA+SA6lBBiAzyHbAqVtfUQxLm/aIYJCC1CADkBlkOUA45uL/33/+oQQnMSkbpAY52kBmgMwi2QFaOddQfLLv' +
    '0mei8zdILTIAmUWxA4jNVtiyLVUcQCgu8aUdshwAwl++/0WJS7mUKwTjf/XR9yhpB2QG2blg14VPKD6ZsPkVXsvXn/iAURiBzCDb' +
    'AfETH6AYBvJZdN99oi0HAZAZZDsAZPDNpz8wHAGqbNQyr8LVgYIdF6DIASDsUHMLJU7Ri2X04hcd4Ao1kmrD5MkPcTqCGIDPEQzE' +
    'Zq3gznsY5Tw1HMFAShMKlA17N7z8/+TtLwwLQGIguayZj7CGFj4HkNUB0c2//t+j8Q4Yg9jIciCLkB2BJwq+k9UoJQbDHEEgER6n' +
    'abMcZDG+HABrlg94x2TAu2aDonM6YN1zAJfMJEMJVonBAAAAAElFTkSuQmCC',
  'base64',
);
