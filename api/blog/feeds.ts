import { createHash } from 'node:crypto';
import type { PostStore, PostVersion } from '../../db/posts/post-store.js';
import type { Post } from '../../shared/contract.js';
import { Failure } from '../../shared/failures.js';
import { type FeedEntry, type FeedFormat, type FeedSource, feedDocuments } from './feed-formats.js';
import { headingOf } from './post-page.js';
import { rendererVersion } from './rendering/markdown.js';
import type { RenderPost } from './rendering/rendered-posts.js';

/** A feed holds the newest published posts, at most so many. */
const maxEntries = 50;

interface FeedsDeps {
  posts: Pick<PostStore, 'newest' | 'list'>;
  title: string;
  /** Public base address of the blog. */
  baseUrl: string;
  render: RenderPost;
}

/** A feed as it is now. */
export interface Feed {
  /** Strong; another one as soon as a post of the feed is another. */
  etag: string;
  mediaType: string;
  /** The document in UTF-8. Posts are read and rendered only when nobody has asked for it before. */
  body: () => Promise<Buffer>;
}

/** The feeds of one blog; built once, since what has been rendered is kept in it. */
export interface Feeds {
  /** Throws `Failure('database_unavailable')`, as the feed's `body` does; that also when too many posts are being rendered. */
  find(format: FeedFormat): Promise<Feed>;
}

/**
 * Makes the feeds of the 50 newest published posts; fewer when they are so long that the store's first page ends
 * before. Two that ask for the same new feed at once wait for one rendering.
 */
export function createFeeds({ posts, title, baseUrl, render }: FeedsDeps): Feeds {
  const source = { title, baseUrl: baseUrl.replace(/\/+$/, '') };
  const readEntries = () => readNewest({ posts, render });
  let edition: Edition | undefined;
  return {
    async find(format) {
      const key = keyOf(source, await posts.newest(maxEntries));
      const body = async () => {
        if (edition?.key !== key) edition = createEdition(key, source, readEntries);
        const current = edition;
        try {
          return await current.body(format);
        } catch (error) {
          // What has failed is tried again by the next that asks.
          if (edition === current) edition = undefined;
          throw error;
        }
      };
      return { etag: `"${key}-${format}"`, mediaType: feedDocuments[format].mediaType, body };
    },
  };
}

/** Also the configuration and the renderer count: they are part of every feed. */
function keyOf(source: FeedSource, versions: readonly PostVersion[]): string {
  const facts = [
    rendererVersion,
    source.title,
    source.baseUrl,
    versions.map(({ id, version, updatedAt }) => [id, version, updatedAt]),
  ];
  return createHash('sha256').update(JSON.stringify(facts)).digest('base64url').slice(0, 22);
}

/** Both feeds of one state of the posts. */
interface Edition {
  key: string;
  body: (format: FeedFormat) => Promise<Buffer>;
}

function createEdition(key: string, source: FeedSource, readEntries: () => Promise<FeedEntry[]>): Edition {
  const bodies = new Map<FeedFormat, Promise<Buffer>>();
  let entries: Promise<FeedEntry[]> | undefined;
  const write = async (format: FeedFormat) => {
    entries ??= readEntries();
    return Buffer.from(feedDocuments[format].write(source, await entries));
  };
  return {
    key,
    body: (format) => {
      const body = bodies.get(format) ?? write(format);
      bodies.set(format, body);
      return body;
    },
  };
}

async function readNewest({ posts, render }: Pick<FeedsDeps, 'posts' | 'render'>): Promise<FeedEntry[]> {
  const page = await posts.list({ limit: maxEntries, drafts: false });
  const entries: FeedEntry[] = [];
  // One after the other, so that a feed does not take every place of those who wait for the renderer.
  for (const post of page.posts) {
    const { html, final } = await render(post);
    // Readers of feeds keep an entry until its post changes: better later than not as it will be.
    if (!final) throw new Failure('internal', tooBusy);
    entries.push(toEntry(post, html));
  }
  return entries;
}

const tooBusy = { detail: 'Too many posts are being rendered.', retryable: true, retryAfterMs: 2000 };

function toEntry(post: Post, html: string): FeedEntry {
  const { id, author, tags, publishedAt, createdAt, updatedAt } = post;
  const title = post.title?.trim() || null;
  const heading = headingOf(post, html);
  return { id, title, heading, author, tags, publishedAt: publishedAt ?? createdAt, updatedAt, html };
}
