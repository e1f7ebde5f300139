import type { Database } from '../database/client.js';
import { asc, sql } from '../database/drizzle.js';
import { posts } from '../schema.js';
import { isPublished } from './post-rows.js';

/** A published post as a sitemap lists it. */
export interface MappedPost {
  id: string;
  slug: string;
  updatedAt: Date;
}

/** All published posts in parts of the same size, oldest first. May throw `Failure('database_unavailable')`. */
export interface PostMap {
  /** How many parts there are: one at least. */
  countParts(): Promise<number>;
  /** The posts of the part; parts are numbered from 1. Empty when there is no such part. */
  part(number: number): Promise<MappedPost[]>;
}

/** Reads them by their place in the order, in one statement each. */
export const createPostMap = (
  database: Pick<Database, 'run'>,
  { partSize }: { partSize: number },
): PostMap => ({
  countParts: async () => {
    const [row] = await database.run(
      (db) => db.select({ count: sql<number>`count(*)::integer` }).from(posts).where(isPublished),
      'search',
    );
    return Math.max(1, Math.ceil((row?.count ?? 0) / partSize));
  },
  part: (number) =>
    database.run(
      (db) =>
        db
          .select({ id: posts.id, slug: posts.slug, updatedAt: posts.updatedAt })
          .from(posts)
          .where(isPublished)
          .orderBy(asc(posts.sortedAt), asc(posts.id))
          .offset((number - 1) * partSize)
          .limit(partSize),
      'search',
    ),
});
