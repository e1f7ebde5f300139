import type { Statements } from '../database/client.js';
import { and, eq, sql } from '../database/drizzle.js';
import { posts } from '../schema.js';
import { oncePerConnection, postColumns, toPost } from './post-rows.js';
import type { PostStore } from './post-store.js';

/** Reads a post like `PostStore.get`, on statements that may share a deadline with others. */
export type PostReader = (
  statements: Statements,
  ...question: Parameters<PostStore['get']>
) => ReturnType<PostStore['get']>;

/** The reader that every part of the post store shares. */
export function createPostReader(): PostReader {
  const hasId = eq(posts.id, sql.placeholder('id'));
  const isPublished = sql`${posts.status} = 'published'`;
  const any = oncePerConnection((db) => db.select(postColumns).from(posts).where(hasId).prepare('post'));
  const published = oncePerConnection((db) =>
    db.select(postColumns).from(posts).where(and(hasId, isPublished)).prepare('published-post'),
  );
  return async (statements, id, { drafts }) => {
    const [row] = await statements.run((db) => (drafts ? any : published)(db).execute({ id }));
    return row && toPost(row);
  };
}
