import type { Post } from '../../shared/contracts/contract.js';
import type { Drizzle } from '../database/connections.js';
import { type Column, sql } from '../database/drizzle.js';
import { posts } from '../schema.js';

/** A time as PostgreSQL writes it. Drizzle would parse it into a `Date` only for `toPost` to format that again. */
export const timeText = <Text extends string | null>(column: Column) => sql<Text>`${column}`;

/** The columns of a post. Not the search vector, which is larger than the text. */
export const postColumns = {
  id: posts.id,
  title: posts.title,
  content: posts.content,
  author: posts.author,
  tags: posts.tags,
  slug: posts.slug,
  status: posts.status,
  publishedAt: timeText<string | null>(posts.publishedAt),
  createdAt: timeText<string>(posts.createdAt),
  updatedAt: timeText<string>(posts.updatedAt),
  version: posts.version,
};

/** One version of one post: what an ETag is made of. */
export type PostVersion = Pick<Post, 'id' | 'version' | 'updatedAt'>;

/** Distinguishes the versions of one post. */
export type PostRevision = Pick<PostVersion, 'version' | 'updatedAt'>;

/** A literal, not a parameter: a generic plan could not use the partial index of published posts. */
export const isPublished = sql`${posts.status} = 'published'`;

/** The post of the contract, of a row of `postColumns` alone, whose times are as PostgreSQL writes them. */
export const toPost = (row: Post): Post => ({
  ...row,
  publishedAt: row.publishedAt === null ? null : toIsoTime(row.publishedAt),
  createdAt: toIsoTime(row.createdAt),
  updatedAt: toIsoTime(row.updatedAt),
});

const secondsEnd = '2026-01-01 00:00:00'.length;

/** The time that PostgreSQL has written, with at most three digits after the seconds, as RFC 3339 in UTC. */
export function toIsoTime(text: string): string {
  // `Date` takes ten times as long, for other time zones and for years that are not four digits.
  if (!text.endsWith('+00') || text[4] !== '-') return new Date(text).toISOString();
  const fraction = text.slice(secondsEnd + 1, -3).padEnd(3, '0');
  return `${text.slice(0, 10)}T${text.slice(11, secondsEnd)}.${fraction}Z`;
}

/**
 * Builds a query once for each connection, and for each key of what it is built for: building takes Drizzle longer than
 * running. There are to be few keys.
 */
export function buildOnce<Query, Given extends unknown[]>(
  build: (db: Drizzle, ...given: Given) => Query,
  keyOf: (...given: Given) => string = () => '',
): (db: Drizzle, ...given: Given) => Query {
  const built = new WeakMap<Drizzle, Map<string, Query>>();
  return (db, ...given) => {
    const ofConnection = built.get(db) ?? new Map<string, Query>();
    built.set(db, ofConnection);
    const key = keyOf(...given);
    const query = ofConnection.get(key) ?? build(db, ...given);
    ofConnection.set(key, query);
    return query;
  };
}
