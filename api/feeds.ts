import { createHash } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { PostStore, PostVersion } from '../db/posts.js';
import type { Post } from '../shared/contract.js';
import { type FeedEntry, type FeedFormat, type FeedSource, feedDocuments } from './feed-documents.js';
import { headingOf } from './post-page.js';

/** A feed holds the newest published posts, at most so many. */
const mostEntries = 50;

interface FeedsDeps {
  posts: Pick<PostStore, 'newest' | 'list'>;
  title: string;
  /** Public base address of the blog. */
  baseUrl: string;
  /** Markdown to HTML that needs no further cleaning. */
  render: (markdown: string) => string;
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
  /** Throws `Failure('database_unavailable')`, as the feed's `body` does. */
  find(format: FeedFormat): Promise<Feed>;
}

/**
 * Makes the feeds of the 50 newest published posts; fewer when they are so long that the store's first page ends
 * before. Two that ask for the same new feed at once wait for one rendering, and a post that has not changed is not
 * rendered again.
 */
export function createFeeds({ posts, title, baseUrl, render }: FeedsDeps): Feeds {
  const source = { title, baseUrl: baseUrl.replace(/\/+$/, '') };
  const readEntries = createEntryReader({ posts, render });
  let edition: Edition | undefined;
  return {
    async find(format) {
      const key = keyOf(source, await posts.newest(mostEntries));
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

/** Also the configuration counts: it is part of every feed. */
function keyOf(source: FeedSource, versions: readonly PostVersion[]): string {
  const facts = [source.title, source.baseUrl, versions.map((post) => [post.id, markOf(post)])];
  return createHash('sha256').update(JSON.stringify(facts)).digest('base64url').slice(0, 22);
}

const markOf = ({ version, updatedAt }: PostVersion): string => `${version} ${updatedAt}`;

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

/** Reads the newest posts as entries, and keeps those of the last time for the posts that are still the same. */
function createEntryReader({ posts, render }: Pick<FeedsDeps, 'posts' | 'render'>) {
  let known = new Map<string, FeedEntry>();
  return async (): Promise<FeedEntry[]> => {
    const page = await posts.list({ limit: mostEntries, drafts: false });
    const entries = new Map<string, FeedEntry>();
    for (const post of page.posts) {
      const key = `${post.id} ${markOf(post)}`;
      let entry = known.get(key);
      if (entry === undefined) {
        // A long post can take a second; other requests must not wait for fifty of them.
        await nextTurn();
        entry = toEntry(post, render(post.content));
      }
      entries.set(key, entry);
    }
    known = entries;
    return [...entries.values()];
  };
}

function toEntry(post: Post, html: string): FeedEntry {
  const { id, author, tags, publishedAt, createdAt, updatedAt } = post;
  const title = post.title?.trim() || null;
  const heading = headingOf(post, html);
  return { id, title, heading, author, tags, publishedAt: publishedAt ?? createdAt, updatedAt, html };
}
