import { generateAtomFeed, generateJsonFeed } from 'feedsmith';
import type { Post } from '../../shared/contracts/contract.js';
import { type Blog, postPath } from './blog-layout.js';

/** A format of a feed. */
export type FeedFormat = 'json' | 'atom';

/** The blog that a feed belongs to. */
export type FeedSource = Pick<Blog, 'title' | 'baseUrl' | 'language' | 'formatDay'>;

/** A post as feeds show it. */
export interface FeedEntry extends Pick<Post, 'id' | 'slug' | 'title' | 'author' | 'tags' | 'updatedAt'> {
  /** The title, or a substitute where a format requires one. */
  heading: string;
  publishedAt: string;
  html: string;
}

/** Each format's media type and writer: newest entry first, all entries in one document. */
export const feedDocuments: Record<
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
