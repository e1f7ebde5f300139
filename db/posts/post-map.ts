import type { Database } from '../database/client.js';
import { asc, count } from '../database/drizzle.js';
import { posts } from '../schema.js';
import { isPublished } from './post-rows.js';

/** A published post as a sitemap lists it. */
export interface MappedPost {
  id: string;
  slug: string;
  updatedAt: Date;
}

/** All published posts in parts of the same size, oldest first. May throw `Failure('database_unavailable')`. */
export type PostMap = ReturnType<typeof createPostMap>;

/** Reads them by their place in the order, in one statement each. */
export const createPostMap = (database: Pick<Database, 'run'>, { partSize }: { partSize: number }) => ({
  /** How many parts there are: one at least. */
  async countParts(): Promise<number> {
    const [row] = await database.run(
      (db) => db.select({ total: count() }).from(posts).where(isPublished),
      'search',
    );
    return Math.max(1, Math.ceil((row?.total ?? 0) / partSize));
  },
  /** The posts of the part; parts are numbered from 1. Empty when there is no such part. */
  part: (number: number): Promise<MappedPost[]> =>
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
