import type { MappedPost, PostMap } from '../../db/posts/post-map.js';
import { postPath } from '../blog/blog-layout.js';
import { escapeHtml } from '../blog/rendering/markdown.js';
import { type TaggedBytes, taggedBytes } from '../http/conditional.js';

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
  readonly #underWay = new Map<number, Promise<TaggedBytes | undefined>>();

  constructor(deps: SitemapDeps) {
    this.#deps = deps;
  }

  /** The part of that number, or the index; undefined without such a part. Throws `Failure('database_unavailable')`. */
  find(part = 0): Promise<TaggedBytes | undefined> {
    const reading = this.#underWay.get(part) ?? this.#read(part).finally(() => this.#underWay.delete(part));
    this.#underWay.set(part, reading);
    return reading;
  }

  async #read(part: number): Promise<TaggedBytes | undefined> {
    if (part === 0) return this.#writeIndex(await this.#deps.posts.countParts());
    const posts = await this.#deps.posts.part(part);
    return posts.length > 0 || part === 1 ? toDocument(this.#writePart(posts)) : undefined;
  }

  #writeIndex(parts: number): TaggedBytes {
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

const toDocument = (xml: string): TaggedBytes =>
  taggedBytes(Buffer.from(`<?xml version="1.0" encoding="UTF-8"?>\n${xml}`));
