import { LRUCache } from 'lru-cache';
import type { Post } from '../../../shared/contract.js';
import type { Log } from '../../../shared/runtime/log.js';
import { escapeHtml, type MarkdownRenderer, type Rendering } from './markdown.js';

/** The content of a post for a page or a feed. */
export interface RenderedPost {
  /** Needs no further cleaning. What could not be rendered stands in it as it was written. */
  html: string;
  /** Whether the next that asks for this version of the post will get the same. */
  final: boolean;
}

/** Renders the content of a post. */
export type RenderPost = (post: Post) => Promise<RenderedPost>;

interface RenderedPostsDeps {
  renderer: Pick<MarkdownRenderer, 'render'>;
  log: Log;
  /** Memory for what was rendered, in bytes. */
  maxBytes?: number;
}

/**
 * Makes the rendering of posts that the pages and the feeds share: what was rendered lately is kept, also that a post
 * was refused, and who asks for what is being rendered waits for that.
 */
export function createRenderedPosts({ renderer, log, maxBytes = 16_777_216 }: RenderedPostsDeps): RenderPost {
  const kept = new LRUCache<string, Rendering>({ maxSize: maxBytes, sizeCalculation: sizeOf });
  const underway = new Map<string, Promise<Rendering>>();
  const render = async (key: string, { id, version, content }: Post): Promise<Rendering> => {
    try {
      const rendering = await renderer.render(content);
      if (rendering.kind === 'refused') log.warn({ post: id, version }, 'a post is too costly to render');
      if (rendering.kind !== 'busy') kept.set(key, rendering);
      return rendering;
    } finally {
      underway.delete(key);
    }
  };
  const join = (key: string, post: Post): Promise<Rendering> => {
    const rendering = underway.get(key) ?? render(key, post);
    underway.set(key, rendering);
    return rendering;
  };
  return async (post) => {
    const key = `${post.id} ${post.version} ${post.updatedAt}`;
    const rendering = kept.get(key) ?? (await join(key, post));
    if (rendering.kind === 'rendered') return { html: rendering.html, final: true };
    return { html: `<pre>${escapeHtml(post.content)}</pre>`, final: rendering.kind === 'refused' };
  };
}

/** Beside the text itself, in bytes. */
const overhead = 300;

/** A character takes one byte or two. */
const sizeOf = (rendering: Rendering): number =>
  overhead + (rendering.kind === 'rendered' ? 2 * rendering.html.length : 0);
