import type { Database } from '../database/client.js';
import { asc, count, sql } from '../database/drizzle.js';
import { posts } from '../schema.js';
import { isPublished } from './post-rows.js';

/** A published post as a sitemap lists it. */
export interface MappedPost {
  id: string;
  slug: string;
  updatedAt: Date;
}

/** The state of all published posts at one moment. */
export interface MapState {
  /** Into how many parts they are divided: one at least. */
  parts: number;
  /** Changes with every change of a published post, and when there is one more or less. */
  version: string;
}

/** All published posts in parts of the same size, oldest first. May throw `Failure('database_unavailable')`. */
export type PostMap = ReturnType<typeof createPostMap>;

/** Reads them by their place in the order, in one statement each. */
export const createPostMap = (database: Pick<Database, 'run'>, { partSize }: { partSize: number }) => ({
  /** Reads no texts, and sends one row. */
  async state(): Promise<MapState> {
    const [row] = await database.run(
      (db) => db.select({ total: count(), version: versionOfAll }).from(posts).where(isPublished),
      'search',
    );
    return { parts: Math.max(1, Math.ceil((row?.total ?? 0) / partSize)), version: row?.version ?? '' };
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

/** With the sum of the versions: a transaction that took long changes a post at an earlier time than the latest. */
const versionOfAll = sql<string>`concat_ws(' ', count(*), sum(${posts.version}), max(${posts.updatedAt}))`;
