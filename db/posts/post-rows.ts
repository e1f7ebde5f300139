import type { Post } from '../../shared/contracts/contract.js';
import type { Purpose, Statements } from '../database/client.js';
import type { Drizzle } from '../database/connections.js';
import { type Column, sql } from '../database/drizzle.js';
import { posts } from '../schema.js';

/** A time as PostgreSQL writes it. Drizzle would parse it into a `Date` only for `toPost` to format that again. */
const timeText = <Text extends string | null>(column: Column) => sql<Text>`${column}`;

/** The columns of a post, for statements made with Drizzle. Not the search vector, which is larger than the text. */
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

/** The same for plain SQL, which the frequent reads use: Drizzle takes longer over a row than PostgreSQL. */
export const postFields = `posts.id, posts.title, posts.content, posts.author, posts.tags, posts.slug, posts.status,
  posts.published_at as "publishedAt", posts.created_at as "createdAt", posts.updated_at as "updatedAt", posts.version`;

/** One version of one post: what an ETag is made of. */
export type PostVersion = Pick<Post, 'id' | 'version' | 'updatedAt'>;

/** Distinguishes the versions of one post. */
export type PostRevision = Pick<PostVersion, 'version' | 'updatedAt'>;

/** A literal, not a parameter: a generic plan could not use the partial index of published posts. */
export const isPublished = sql`${posts.status} = 'published'`;

/** A row of `postColumns` or `postFields`: a post whose times are as PostgreSQL writes them. */
export type PostRow = Post;

/** The post of the contract, of a row without other columns. */
export const toPost = (row: PostRow): Post => ({
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

/** One statement in plain SQL with the values of its parameters. */
export interface Statement {
  text: string;
  values: readonly unknown[];
  purpose?: Purpose | undefined;
}

/** Runs it on postgres.js; arrays come as arrays, times as texts. A search is planned for its values, others once. */
export const read = <Row>(statements: Statements, { text, values, purpose }: Statement): Promise<Row[]> =>
  statements.run(async ({ $client }) => {
    const prepare = purpose !== 'search';
    return (await $client.unsafe(text, [...values] as string[], { prepare })) as unknown as Row[];
  }, purpose);

/** Builds a query once for each connection: building takes Drizzle longer than running. */
export function buildOnce<Query>(build: (db: Drizzle) => Query): (db: Drizzle) => Query {
  const built = new WeakMap<Drizzle, Query>();
  return (db) => {
    const query = built.get(db) ?? build(db);
    built.set(db, query);
    return query;
  };
}
