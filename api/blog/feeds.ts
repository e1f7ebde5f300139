import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { PostVersion } from '../../db/posts/post-rows.js';
import type { PostStore } from '../../db/posts/post-store.js';
import type { Post } from '../../shared/contracts/contract.js';
import { Failure } from '../../shared/failures.js';
import { type FeedEntry, type FeedFormat, type FeedSource, feedDocuments } from './feed-formats.js';
import { headingOf } from './post-page.js';
import { rendererVersion } from './rendering/markdown.js';
import type { RenderPost } from './rendering/rendered-posts.js';

const maxEntries = 50;

interface FeedsDeps {
  posts: Pick<PostStore, 'newest' | 'list'>;
  blog: FeedSource;
  render: RenderPost;
}

/** The current state of a feed. */
export interface Feed {
  /** Strong; changes with every change of a post in the feed. */
  etag: string;
  mediaType: string;
  /** The document in UTF-8. Reads the posts only for the first request of this state. */
  body: () => Promise<Buffer>;
}

/** The feeds of one blog. They cache their documents, so build them once. */
export type Feeds = ReturnType<typeof createFeeds>;

/** Makes the feeds of the 50 newest published posts, or fewer when long posts end the store's first page earlier. */
export function createFeeds({ posts, blog, render }: FeedsDeps) {
  const documents = new LRUCache<string, Buffer, FeedFormat>({
    max: Object.keys(feedDocuments).length,
    // A document that is evicted while it is written still answers those who wait for it.
    ignoreFetchAbort: true,
    fetchMethod: async (_key, _stale, { context: format }) =>
      Buffer.from(feedDocuments[format].write(blog, await readNewest({ posts, render, blog }))),
  });
  return {
    /** Throws `database_unavailable`; so does `body`, and `internal` if the renderer is busy. */
    async find(format: FeedFormat): Promise<Feed> {
      const key = `${keyOf(blog, await posts.newest(maxEntries))}-${format}`;
      const body = () => documents.forceFetch(key, { context: format });
      return { etag: `"${key}"`, mediaType: feedDocuments[format].mediaType, body };
    },
  };
}

/** Must grow when the same posts give another document: readers keep theirs while the key is the same. */
const formatVersion = 4;

/** Includes the configuration and the renderer, which also affect every feed. */
function keyOf(source: FeedSource, versions: readonly PostVersion[]): string {
  const inputs = [
    formatVersion,
    rendererVersion,
    source.title,
    source.baseUrl,
    source.language,
    versions.map(({ id, version, updatedAt }) => [id, version, updatedAt]),
  ];
  return createHash('sha256').update(JSON.stringify(inputs)).digest('base64url').slice(0, 22);
}

async function readNewest({ posts, render, blog }: FeedsDeps): Promise<FeedEntry[]> {
  const page = await posts.list({ limit: maxEntries, drafts: false });
  const entries: FeedEntry[] = [];
  // One at a time, so that a feed does not fill the renderer's queue.
  for (const post of page.posts) {
    const { html, final } = await render(post);
    // Feed readers store an entry until its post changes, so an entry must never be provisional.
    if (!final) throw new Failure('internal', tooBusy);
    entries.push(toEntry(post, html, blog));
  }
  return entries;
}

const tooBusy = { detail: 'Too many posts are being rendered.', retryable: true, retryAfterMs: 2000 };

function toEntry(post: Post, html: string, blog: FeedSource): FeedEntry {
  const { id, slug, author, tags, publishedAt, createdAt, updatedAt } = post;
  const title = post.title?.trim() || null;
  const heading = headingOf(post, html, blog);
  return { id, slug, title, heading, author, tags, publishedAt: publishedAt ?? createdAt, updatedAt, html };
}
