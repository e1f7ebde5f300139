import type { Post } from '../../shared/contract.js';
import type { Drizzle } from '../database/connections.js';
import { sql } from '../database/drizzle.js';
import { posts } from '../schema.js';

/** The columns of a response. Not the search vector, which is larger than the text. */
export const postColumns = {
  id: posts.id,
  title: posts.title,
  content: posts.content,
  author: posts.author,
  tags: posts.tags,
  slug: posts.slug,
  status: posts.status,
  publishedAt: posts.publishedAt,
  createdAt: posts.createdAt,
  updatedAt: posts.updatedAt,
  version: posts.version,
};

/** The columns of an ETag. */
export const versionColumns = { id: posts.id, version: posts.version, updatedAt: posts.updatedAt };

/** One version of one post: what an ETag is made of. */
export interface PostVersion {
  id: string;
  version: number;
  updatedAt: string;
}

/** Distinguishes the versions of one post. */
export type PostRevision = Pick<PostVersion, 'version' | 'updatedAt'>;

/** A literal, not a parameter: a generic plan could not use the partial index of published posts. */
export const isPublished = sql`${posts.status} = 'published'`;

type PostRow = Pick<typeof posts.$inferSelect, keyof typeof postColumns>;

/** The post of the contract; other columns of the row are dropped. */
export function toPost(row: PostRow): Post {
  return {
    id: row.id,
    title: row.title,
    content: row.content,
    author: row.author,
    tags: row.tags,
    slug: row.slug,
    status: row.status,
    publishedAt: row.publishedAt?.toISOString() ?? null,
    createdAt: row.createdAt.toISOString(),
    updatedAt: row.updatedAt.toISOString(),
    version: row.version,
  };
}

/** Builds a query once for each connection: building takes Drizzle longer than running. */
export function buildOnce<Query>(build: (db: Drizzle) => Query): (db: Drizzle) => Query {
  const built = new WeakMap<Drizzle, Query>();
  return (db) => {
    const query = built.get(db) ?? build(db);
    built.set(db, query);
    return query;
  };
}
