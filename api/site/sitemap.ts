import type { MappedPost, PostMap } from '../../db/posts/post-map.js';
import { postPath } from '../blog/blog-layout.js';
import { escapeHtml } from '../blog/rendering/markdown.js';
import { digestTag } from '../http/conditional.js';

/** Bytes with their entity tag. */
export interface SiteDocument {
  etag: string;
  body: Buffer;
}

interface SitemapDeps {
  posts: PostMap;
  /** Public base address of the blog, without a trailing slash. */
  baseUrl: string;
}

/**
 * The sitemap of the published posts (https://www.sitemaps.org/protocol.html): an index, and parts numbered from 1,
 * oldest posts first. Simultaneous requests for the same document share one query; each later request queries again,
 * because a post that was withdrawn must not be listed any longer.
 */
export class Sitemap {
  readonly #deps: SitemapDeps;
  /** By the number of the part; 0 is the index. */
  readonly #underWay = new Map<number, Promise<SiteDocument | undefined>>();

  constructor(deps: SitemapDeps) {
    this.#deps = deps;
  }

  /** Throws `Failure('database_unavailable')`, as `part` does. */
  async index(): Promise<SiteDocument | undefined> {
    return this.#share(0, async () => this.#writeIndex(await this.#deps.posts.countParts()));
  }

  /** Undefined when there is no part of that number. */
  async part(number: number): Promise<SiteDocument | undefined> {
    if (!(number >= 1)) return undefined;
    return this.#share(number, async () => {
      const posts = await this.#deps.posts.part(number);
      return posts.length > 0 || number === 1 ? toDocument(this.#writePart(posts)) : undefined;
    });
  }

  #share(key: number, read: () => Promise<SiteDocument | undefined>): Promise<SiteDocument | undefined> {
    const reading = this.#underWay.get(key) ?? read().finally(() => this.#underWay.delete(key));
    this.#underWay.set(key, reading);
    return reading;
  }

  #writeIndex(parts: number): SiteDocument {
    const addresses = Array.from({ length: parts }, (_, index) =>
      this.#address(`/sitemap.xml?part=${index + 1}`),
    );
    const items = addresses.map((address) => `<sitemap><loc>${address}</loc></sitemap>\n`);
    return toDocument(`<sitemapindex xmlns="${namespace}">\n${items.join('')}</sitemapindex>\n`);
  }

  #writePart(posts: readonly MappedPost[]): string {
    const urls = posts.map(
      (post) =>
        `<url><loc>${this.#address(postPath(post))}</loc><lastmod>${post.updatedAt.toISOString()}</lastmod></url>\n`,
    );
    return `<urlset xmlns="${namespace}">\n${urls.join('')}</urlset>\n`;
  }

  #address(path: string): string {
    return escapeHtml(this.#deps.baseUrl + path);
  }
}

const namespace = 'http://www.sitemaps.org/schemas/sitemap/0.9';

function toDocument(xml: string): SiteDocument {
  const body = Buffer.from(`<?xml version="1.0" encoding="UTF-8"?>\n${xml}`);
  return { body, etag: digestTag(body) };
}
