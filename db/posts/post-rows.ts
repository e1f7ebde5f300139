import type { Post } from '../../shared/contract.js';
import type { Drizzle } from '../database/client.js';
import { posts } from '../schema.js';

/** What an answer shows of a post. Never the search vector, which takes more room than the text. */
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

/** What an ETag is made of. */
export const versionColumns = { id: posts.id, version: posts.version, updatedAt: posts.updatedAt };

type PostRow = Pick<typeof posts.$inferSelect, keyof typeof postColumns>;

/** A post as the contract has it; what else the row holds is left out. */
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

/** Builds a query once for every connection, because Drizzle takes longer to build one than to run it. */
export function oncePerConnection<Query>(build: (db: Drizzle) => Query): (db: Drizzle) => Query {
  const built = new WeakMap<Drizzle, Query>();
  return (db) => {
    const query = built.get(db) ?? build(db);
    built.set(db, query);
    return query;
  };
}
