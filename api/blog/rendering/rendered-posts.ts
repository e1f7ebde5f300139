import { LRUCache } from 'lru-cache';
import type { Post } from '../../../shared/contracts/contract.js';
import { Failure } from '../../../shared/failures.js';
import type { Log } from '../../../shared/runtime/log.js';
import { escapeHtml, type MarkdownRenderer, type Rendering } from './markdown.js';

/** The content of a post for a page or a feed. */
export interface RenderedPost {
  /** Safe as it is. Content that could not be rendered is shown as its source. */
  html: string;
  /** Whether rendering this version of the post again gives the same. */
  final: boolean;
}

/** Renders the content of a post. */
export type RenderPost = (post: Post) => Promise<RenderedPost>;

interface RenderedPostsDeps {
  renderer: Pick<MarkdownRenderer, 'render'>;
  log: Log;
  /** Memory for the cache, in bytes. */
  maxBytes?: number;
}

/** Renders posts for pages and feeds. Results and refusals are cached; concurrent requests for a version share one. */
export function createRenderedPosts({ renderer, log, maxBytes = 16_777_216 }: RenderedPostsDeps): RenderPost {
  const cache = new LRUCache<string, Rendering, Post>({
    maxSize: maxBytes,
    sizeCalculation: sizeOf,
    // A rendering that is evicted while it runs still answers those who wait for it, if it returns something.
    ignoreFetchAbort: true,
    fetchMethod: async (_key, _stale, { context: { id, version, content } }) => {
      const rendering = await renderer.render(content);
      if (rendering.kind === 'refused') log.warn({ post: id, version }, 'a post is too costly to render');
      return rendering;
    },
  });
  return async (post) => {
    const key = `${post.id} ${post.version} ${post.updatedAt}`;
    const rendering = await cache.fetch(key, { context: post });
    // The next request tries again.
    if (rendering?.kind === 'busy') cache.delete(key);
    return toRenderedPost(rendering, post.content);
  };
}

/** Previews at once; more would keep the readers of posts waiting. */
const maxPreviews = 4;

/** Makes the function that renders other texts than posts, without a cache; it throws `rate_limited`. */
export function createPreview(
  renderer: Pick<MarkdownRenderer, 'render'>,
): (content: string) => Promise<string> {
  let running = 0;
  return async (content) => {
    if (running >= maxPreviews) throw new Failure('rate_limited', { retryAfterMs: 1000 });
    running++;
    try {
      return toRenderedPost(await renderer.render(content), content).html;
    } finally {
      running--;
    }
  };
}

const toRenderedPost = (rendering: Rendering | undefined, content: string): RenderedPost =>
  rendering?.kind === 'rendered'
    ? { html: rendering.html, final: true }
    : { html: `<pre>${escapeHtml(content)}</pre>`, final: rendering?.kind === 'refused' };

/** Bytes of an entry without its text. */
const overhead = 300;

/** A character takes one byte or two. */
const sizeOf = (rendering: Rendering): number =>
  overhead + (rendering.kind === 'rendered' ? 2 * rendering.html.length : 0);
