import type { Database } from '../database/client.js';
import type { Drizzle } from '../database/connections.js';
import { and, asc, sql } from '../database/drizzle.js';
import { posts } from '../schema.js';
import type { Position } from './post-lists.js';
import { isPublished } from './post-rows.js';

/** A published post as a sitemap lists it. */
export interface MappedPost {
  id: string;
  slug: string;
  updatedAt: Date;
}

/** All published posts in parts of the same size, oldest first. Everything may throw `Failure('database_unavailable')`. */
export interface PostMap {
  /** The positions after which the parts begin: one at least. */
  starts(): Promise<Position[]>;
  /** The posts of the part that begins after the position. */
  part(start: Position): Promise<MappedPost[]>;
}

/** Before every post. */
const origin: Position = {
  sortedAt: new Date('0001-01-01T00:00:00Z'),
  id: '00000000-0000-0000-0000-000000000000',
};

/** Reads them by keyset, in statements that look at one part each. */
export function createPostMap(database: Pick<Database, 'run'>, { partSize }: { partSize: number }): PostMap {
  return {
    async starts() {
      const starts = [origin];
      for (;;) {
        const after = starts.at(-1) ?? origin;
        const [last, next] = await database.run((db) => selectEnd(db, { after, partSize }), 'search');
        if (last === undefined || next === undefined) return starts;
        starts.push(last);
      }
    },
    part: (start) => database.run((db) => selectPart(db, { after: start, partSize }), 'search'),
  };
}

interface PartOf {
  after: Position;
  partSize: number;
}

/** The last post of a part, and the first of the next. */
const selectEnd = (db: Drizzle, { after, partSize }: PartOf) =>
  db
    .select({ sortedAt: posts.sortedAt, id: posts.id })
    .from(posts)
    .where(and(isPublished, isAfter(after)))
    .orderBy(...oldestFirst)
    .offset(partSize - 1)
    .limit(2);

const selectPart = (db: Drizzle, { after, partSize }: PartOf) =>
  db
    .select({ id: posts.id, slug: posts.slug, updatedAt: posts.updatedAt })
    .from(posts)
    .where(and(isPublished, isAfter(after)))
    .orderBy(...oldestFirst)
    .limit(partSize);

const oldestFirst = [asc(posts.sortedAt), asc(posts.id)];

const isAfter = ({ sortedAt, id }: Position) =>
  sql`(${posts.sortedAt}, ${posts.id}) > (${sortedAt.toISOString()}, ${id})`;
