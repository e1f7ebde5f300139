import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Position } from '../../db/posts/post-lists.js';
import type { MappedPost, PostMap } from '../../db/posts/post-map.js';
import { postPath } from '../blog/post-address.js';
import { escapeHtml } from '../blog/rendering/markdown.js';

/** Bytes with their entity tag. */
export interface SiteDocument {
  etag: string;
  body: Buffer;
}

interface SitemapDeps {
  posts: PostMap;
  /** Public base address of the blog, without a trailing slash. */
  baseUrl: string;
  /** How long a document is used before the posts are read again, in milliseconds. */
  maxAgeMs?: number;
}

/** In bytes: a part takes about 1.2 MB. */
const maxCacheBytes = 33_554_432;

/**
 * The sitemap of the published posts (https://www.sitemaps.org/protocol.html): an index, and parts that are numbered from 1, oldest posts first. Each document is read at most
 * once in ten minutes.
 */
export class Sitemap {
  readonly #baseUrl: string;
  readonly #starts: LRUCache<'starts', Position[]>;
  readonly #parts: LRUCache<number, SiteDocument, Position>;

  constructor({ posts, baseUrl, maxAgeMs = 600_000 }: SitemapDeps) {
    this.#baseUrl = baseUrl;
    this.#starts = new LRUCache({ ttl: maxAgeMs, max: 1, fetchMethod: () => posts.starts() });
    this.#parts = new LRUCache({
      ttl: maxAgeMs,
      maxSize: maxCacheBytes,
      sizeCalculation: ({ body }) => body.length,
      // A part that is evicted while it is read still answers those who wait for it.
      ignoreFetchAbort: true,
      fetchMethod: async (_number, _stale, { context: start }) =>
        toDocument(this.#writePart(await posts.part(start))),
    });
  }

  /** Throws `Failure('database_unavailable')`, as `part` does. */
  async index(): Promise<SiteDocument> {
    const starts = await this.#findStarts();
    const parts = starts.map(
      (_, index) => `<sitemap><loc>${this.#address(`/sitemap.xml?part=${index + 1}`)}</loc></sitemap>\n`,
    );
    return toDocument(`<sitemapindex xmlns="${namespace}">\n${parts.join('')}</sitemapindex>\n`);
  }

  /** Undefined when there is no part of that number. */
  async part(number: number): Promise<SiteDocument | undefined> {
    const start = (await this.#findStarts())[number - 1];
    return start && this.#parts.fetch(number, { context: start });
  }

  async #findStarts(): Promise<Position[]> {
    return (await this.#starts.fetch('starts')) ?? [];
  }

  #writePart(posts: readonly MappedPost[]): string {
    const urls = posts.map(
      (post) =>
        `<url><loc>${this.#address(postPath(post))}</loc><lastmod>${post.updatedAt.toISOString()}</lastmod></url>\n`,
    );
    return `<urlset xmlns="${namespace}">\n${urls.join('')}</urlset>\n`;
  }

  #address(path: string): string {
    return escapeHtml(this.#baseUrl + path);
  }
}

const namespace = 'http://www.sitemaps.org/schemas/sitemap/0.9';

function toDocument(xml: string): SiteDocument {
  const body = Buffer.from(`<?xml version="1.0" encoding="UTF-8"?>\n${xml}`);
  return { body, etag: etagOf(body) };
}

/** A strong entity tag of the bytes. */
export const etagOf = (bytes: Buffer): string =>
  `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"`;
