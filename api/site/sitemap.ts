import { LRUCache } from 'lru-cache';
import type { MappedPost, MapState, PostMap } from '../../db/posts/post-map.js';
import { postPath } from '../blog/blog-layout.js';
import { escapeHtml } from '../blog/rendering/markdown.js';
import { type TaggedBytes, taggedBytes } from '../http/conditional.js';

interface SitemapDeps {
  posts: PostMap;
  /** Public base address of the blog, without a trailing slash. */
  baseUrl: string;
}

/** Memory for documents, in bytes; a part of 10,000 posts takes one to two million. */
const maxBytes = 16_777_216;

/**
 * The sitemap of the published posts (https://www.sitemaps.org/protocol.html): an index, and parts numbered from 1,
 * oldest posts first. A document is written once for a state of the posts. Each request asks for the state, because a
 * post that was withdrawn must not be listed any longer; simultaneous ones share the answer.
 */
export class Sitemap {
  readonly #deps: SitemapDeps;
  /** By the number of the part, and the version of the posts; 0 is the index. */
  readonly #documents = new LRUCache<string, TaggedBytes, { part: number; parts: number }>({
    maxSize: maxBytes,
    sizeCalculation: ({ body }) => body.length,
    // A document that is evicted while it is written still answers those who wait for it.
    ignoreFetchAbort: true,
    fetchMethod: async (_key, _stale, { context: { part, parts } }) =>
      part === 0 ? this.#writeIndex(parts) : this.#writePart(await this.#deps.posts.part(part)),
  });
  #state: Promise<MapState> | undefined;

  constructor(deps: SitemapDeps) {
    this.#deps = deps;
  }

  /** The part of that number, or the index; undefined without such a part. Throws `Failure('database_unavailable')`. */
  async find(part = 0): Promise<TaggedBytes | undefined> {
    this.#state ??= this.#deps.posts.state().finally(() => {
      this.#state = undefined;
    });
    const { parts, version } = await this.#state;
    return part > parts
      ? undefined
      : this.#documents.forceFetch(`${part} ${version}`, { context: { part, parts } });
  }

  #writeIndex(parts: number): TaggedBytes {
    const addresses = Array.from({ length: parts }, (_, index) =>
      this.#address(`/sitemap.xml?part=${index + 1}`),
    );
    const items = addresses.map((address) => `<sitemap><loc>${address}</loc></sitemap>\n`);
    return toDocument(`<sitemapindex xmlns="${namespace}">\n${items.join('')}</sitemapindex>\n`);
  }

  #writePart(posts: readonly MappedPost[]): TaggedBytes {
    const urls = posts.map(
      (post) =>
        `<url><loc>${this.#address(postPath(post))}</loc><lastmod>${post.updatedAt.toISOString()}</lastmod></url>\n`,
    );
    return toDocument(`<urlset xmlns="${namespace}">\n${urls.join('')}</urlset>\n`);
  }

  #address(path: string): string {
    return escapeHtml(this.#deps.baseUrl + path);
  }
}

const namespace = 'http://www.sitemaps.org/schemas/sitemap/0.9';

const toDocument = (xml: string): TaggedBytes =>
  taggedBytes(Buffer.from(`<?xml version="1.0" encoding="UTF-8"?>\n${xml}`));
