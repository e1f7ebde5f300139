import { createHash } from 'node:crypto';
import { Controller, Get, Header, Request, Response, Route, Security, SuccessResponse } from '@tsoa/runtime';
import type { Request as HttpRequest } from 'express';
import { generateAtomFeed, generateJsonFeed } from 'feedsmith';
import { LRUCache } from 'lru-cache';
import type { PostVersion } from '../../db/posts/post-rows.js';
import type { PostStore } from '../../db/posts/post-store.js';
import type { Post, Problem } from '../../shared/contracts/contract.js';
import { Failure } from '../../shared/failures.js';
import { sendDocument } from '../http/conditional.js';
import { type Blog, postPath } from './blog-layout.js';
import { headingOf } from './post-page.js';
import { cacheHeaders } from './post-representations.js';
import { rendererVersion } from './rendering/markdown.js';
import type { RenderPost } from './rendering/rendered-posts.js';

/** The dependencies of the operations on feeds. */
export interface FeedsControllerDeps {
  feeds: Feeds;
}

@Route()
@Response<Problem, { 'Retry-After': string }>('429', 'Too many failed logins, or too many anonymous reads')
@Response<Problem, { 'Retry-After': string }>('503', 'The database is unavailable')
export class FeedsController extends Controller {
  constructor(private readonly deps: FeedsControllerDeps) {
    super();
  }

  /**
   * JSON Feed 1.1 with the 50 newest published posts.
   *
   * @summary Get the JSON feed
   * @param _ifNoneMatch Entity tags of the client's copies: 304 when one of them is current.
   */
  @Get('feed.json')
  @Security('bearer', ['blogs:read'])
  @SuccessResponse<{
    /** State of the feed. */
    ETag: string;
    'Cache-Control': string;
    Vary: string;
  }>('200', 'The feed', 'application/feed+json')
  @Response<void, { ETag: string }>('304', 'Not modified')
  async jsonFeed(
    @Request() request: HttpRequest,
    @Header('If-None-Match') _ifNoneMatch?: string,
  ): Promise<{ [key: string]: unknown }> {
    await this.send('json', request);
    // For the document only: the answer has already been sent.
    return {};
  }

  /**
   * Atom feed (RFC 4287) with the 50 newest published posts.
   *
   * @summary Get the Atom feed
   * @param _ifNoneMatch Entity tags of the client's copies: 304 when one of them is current.
   */
  @Get('feed.xml')
  @Security('bearer', ['blogs:read'])
  @SuccessResponse<{
    /** State of the feed. */
    ETag: string;
    'Cache-Control': string;
    Vary: string;
  }>('200', 'The feed', 'application/atom+xml')
  @Response<void, { ETag: string }>('304', 'Not modified')
  async atomFeed(
    @Request() request: HttpRequest,
    @Header('If-None-Match') _ifNoneMatch?: string,
  ): Promise<string> {
    await this.send('atom', request);
    return '';
  }

  private async send(format: FeedFormat, request: HttpRequest): Promise<void> {
    const { etag, mediaType, body } = await this.deps.feeds.find(format);
    await sendDocument(request, {
      validators: { ETag: etag },
      headers: cacheHeaders(request),
      content: async () => ({ body: await body(), headers: { 'Content-Type': mediaType } }),
    });
  }
}

const maxEntries = 50;

interface FeedsDeps {
  posts: Pick<PostStore, 'newest' | 'list'>;
  blog: FeedSource;
  render: RenderPost;
}

/** The feeds of one blog. They cache their documents, so build them once. */
type Feeds = ReturnType<typeof createFeeds>;

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
    /**
     * The current state of a feed. The tag is strong, and changes with every change of a post in the feed. `body` gives
     * the document in UTF-8, and reads the posts only for the first request of this state. Throws
     * `database_unavailable`; so does `body`, and `internal` if the renderer is busy.
     */
    async find(format: FeedFormat) {
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

/** A format of a feed. */
type FeedFormat = 'json' | 'atom';

/** The blog that a feed belongs to. */
type FeedSource = Pick<Blog, 'title' | 'baseUrl' | 'language' | 'formatDay'>;

/** A post as feeds show it. */
interface FeedEntry extends Pick<Post, 'id' | 'slug' | 'title' | 'author' | 'tags' | 'updatedAt'> {
  /** The title, or a substitute where a format requires one. */
  heading: string;
  publishedAt: string;
  html: string;
}

/** Each format's media type and writer: newest entry first, all entries in one document. */
const feedDocuments: Record<
  FeedFormat,
  { mediaType: string; write: (source: FeedSource, entries: readonly FeedEntry[]) => string }
> = {
  json: { mediaType: 'application/feed+json', write: writeJsonFeed },
  atom: { mediaType: 'application/atom+xml', write: writeAtomFeed },
};

/** Does not change when the blog moves to another address. */
const urnOf = ({ id }: FeedEntry): string => `urn:uuid:${id}`;
const addressOf = ({ baseUrl }: FeedSource, entry: FeedEntry): string => baseUrl + postPath(entry);

/** JSON Feed 1.1, https://www.jsonfeed.org/version/1.1/. */
function writeJsonFeed(source: FeedSource, entries: readonly FeedEntry[]): string {
  const items = entries.map((entry) => ({
    id: urnOf(entry),
    url: addressOf(source, entry),
    ...(entry.title !== null && { title: entry.title }),
    content_html: contentOf(source, entry),
    date_published: entry.publishedAt,
    date_modified: entry.updatedAt,
    authors: [{ name: entry.author }],
    ...(entry.tags.length > 0 && { tags: [...entry.tags] }),
  }));
  const feed = generateJsonFeed({
    title: source.title,
    home_page_url: `${source.baseUrl}/blogs`,
    feed_url: `${source.baseUrl}/feed.json`,
    language: source.language,
    items,
  });
  // The generator omits an empty list, which the format requires.
  return JSON.stringify({ ...(feed as object), ...(items.length === 0 && { items }) });
}

/**
 * The rendered text in which relative addresses lead from that of its post. JSON Feed has no base for them, and readers
 * take their own, or the blog's (https://github.com/manton/JSONFeed/issues/8); Atom's `xml:base` does not change where
 * `#part` leads, which is always the document at hand (RFC 3986, 4.4).
 */
const contentOf = (source: FeedSource, entry: FeedEntry): string =>
  entry.html.replace(
    relativeAddress,
    (_, tag, address) => tag + (URL.parse(address, addressOf(source, entry)) ?? address),
  );

/** In what the sanitizer has written every < begins a tag, and attributes have neither > nor quotation marks. */
const relativeAddress = /(<(?:a|img)(?: [^>]*?)?? (?:href|src)=")(?![a-z][a-z\d+.-]*:)([^"]*)/gi;

/** Atom, RFC 4287. */
function writeAtomFeed(source: FeedSource, entries: readonly FeedEntry[]): string {
  const self = `${source.baseUrl}/feed.xml`;
  return generateAtomFeed({
    id: self,
    title: textOf(source.title),
    updated: entries.map(({ updatedAt }) => updatedAt).reduce(later, beforeAnyPost),
    links: [
      { rel: 'self', type: feedDocuments.atom.mediaType, href: self },
      { rel: 'alternate', href: `${source.baseUrl}/blogs` },
    ],
    entries: entries.map((entry) => ({
      id: urnOf(entry),
      title: textOf(entry.heading),
      updated: entry.updatedAt,
      published: entry.publishedAt,
      authors: [{ name: inXml(entry.author) }],
      categories: entry.tags.map((tag) => ({ term: inXml(tag) })),
      links: [{ rel: 'alternate', type: 'text/html', href: addressOf(source, entry) }],
      content: { type: 'html', value: inXml(contentOf(source, entry)) },
    })),
  });
}

/** Atom requires a time of the last change even for a feed without entries. */
const beforeAnyPost = '1970-01-01T00:00:00.000Z';
const later = (one: string, other: string): string => (one > other ? one : other);

const textOf = (value: string) => ({ type: 'text', value: inXml(value) });

/** XML 1.0 (2.2) forbids these characters, even escaped: a single one would make the whole feed unreadable. */
const inXml = (text: string): string =>
  text.replace(/[^\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/gu, '\u{fffd}');
