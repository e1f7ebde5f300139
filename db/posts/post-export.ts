import type { Post } from '../../shared/contract.js';
import type { Database } from '../database/client.js';
import type { Drizzle } from '../database/connections.js';
import { asc, eq, gt, sql } from '../database/drizzle.js';
import { postSources, posts } from '../schema.js';
import { postColumns, toPost } from './post-rows.js';

/** Where an imported post came from. */
export interface PostSource {
  /** Relative to the imported folder, with `/`. */
  path: string;
  head: string;
}

/** A post, with the file that it came from. */
export interface ExportedPost {
  post: Post;
  /** `isCurrent` says whether the post is unchanged since its import, so that the file still equals it. */
  source: (PostSource & { isCurrent: boolean }) | null;
}

/** Exports all posts, drafts included, in small statements. Everything may throw `Failure('database_unavailable')`. */
export const createPostExport = (database: Database) => ({
  /** The files that posts came from: path by the post's id. */
  async sourcePaths(): Promise<Map<string, string>> {
    const paths = new Map<string, string>();
    for await (const rows of walk((after) => database.run((db) => pathsAfter(db, after))))
      for (const { id, path } of rows) paths.set(id, path);
    return paths;
  },
  /** Every post, page by page in the order of their ids; a page holds about 1 MiB of text, or one post. */
  async *pages(): AsyncGenerator<ExportedPost[]> {
    for await (const rows of walk((after) => database.run((db) => postsAfter(db, after))))
      yield rows.map(({ source, ...row }) => ({ post: toPost(row), source }));
  },
});

/** Every UUID but this one is greater. */
const minId = '00000000-0000-0000-0000-000000000000';

/** The rows in the order of their ids, page by page. */
async function* walk<Row extends { id: string }>(read: (after: string) => Promise<Row[]>) {
  for (let rows = await read(minId); rows.length > 0; rows = await read(rows.at(-1)?.id ?? minId)) yield rows;
}

const pathsAtOnce = 2000;

const pathsAfter = (db: Drizzle, after: string) =>
  db
    .select({ id: postSources.postId, path: postSources.path })
    .from(postSources)
    .where(gt(postSources.postId, after))
    .orderBy(asc(postSources.postId))
    .limit(pathsAtOnce);

const postsAtOnce = 200;
/** Bytes of text after which a page ends: it must arrive over a slow connection before the statement times out. */
const maxBytesPerPage = 1024 * 1024;

const isSource = eq(postSources.postId, posts.id);

/** One page. PostgreSQL stores lengths with the texts, so only the returned texts are decompressed. */
function postsAfter(db: Drizzle, after: string) {
  const sized = db
    .select({
      id: posts.id,
      bytes: sql`octet_length(${posts.content}) + coalesce(octet_length(${postSources.head}), 0)`.as('bytes'),
    })
    .from(posts)
    .leftJoin(postSources, isSource)
    .where(gt(posts.id, after))
    .orderBy(asc(posts.id))
    .limit(postsAtOnce)
    .as('sized');
  const before = sql`order by ${sized.id} rows between unbounded preceding and 1 preceding`;
  const measured = db
    .select({
      id: sized.id,
      bytesBefore: sql`coalesce(sum(${sized.bytes}) over (${before}), 0)`.as('bytes_before'),
    })
    .from(sized)
    .as('measured');
  const source = {
    path: postSources.path,
    head: postSources.head,
    isCurrent: sql<boolean>`${postSources.version} = ${posts.version}`,
  };
  return db
    .select({ ...postColumns, source })
    .from(measured)
    .innerJoin(posts, eq(posts.id, measured.id))
    .leftJoin(postSources, isSource)
    .where(sql`${measured.bytesBefore} < ${maxBytesPerPage}`)
    .orderBy(asc(posts.id));
}
