import { v7 as uuidv7 } from 'uuid';
import type { Post } from '../../shared/contract.js';
import { Failure } from '../../shared/failures.js';
import type { Database } from '../database/client.js';
import { and, eq, inArray, type SQL, sql } from '../database/drizzle.js';
import { isUniqueViolation } from '../database/errors.js';
import { postSources, posts } from '../schema.js';
import { createPostExport, type PostSource } from './post-export.js';

/** A post to be stored; times are RFC 3339 in UTC. Undefined fields keep the values of a post that exists. */
export interface ImportedPost extends Pick<Post, 'title' | 'content' | 'tags' | 'slug' | 'status'> {
  /** Undefined: a new post. */
  id: string | undefined;
  author: string | undefined;
  /** Author of a new post that names none. */
  defaultAuthor: string;
  publishedAt: string | undefined;
  createdAt: string | undefined;
  updatedAt: string | undefined;
  /** The version of the post that this was made from; that of a new post, 1 when undefined. */
  version: number | undefined;
  source: PostSource | undefined;
}

/** The result of storing a post. */
export type Imported = 'created' | 'changed' | 'unchanged';

/** The post that has a slug. */
export interface SlugOwner {
  id: string;
  path: string | null;
}

/** How a post to be stored compares to the stored one. */
export type Comparison = 'missing' | 'same' | 'different' | 'stale';

/** Imports and exports posts, drafts included. Everything may throw `Failure('database_unavailable')`. */
export type PostImport = ReturnType<typeof createPostImport>;

export const createPostImport = (database: Database) => ({
  ...createPostExport(database),
  /**
   * Creates or changes a post, or finds it equal and leaves it alone. Throws `Failure('slug_taken')`, and, unless it is
   * forced, `Failure('precondition_failed')` for a post that would be stale.
   */
  store: (post: ImportedPost, { force } = { force: false }) => store(database, post, force),
  /**
   * The result that storing a post would have. A post is stale when storing it would change one that was changed since:
   * one that has neither the version that its file was imported as nor the version that is given, where one of the two
   * is known.
   */
  async compare(post: ImportedPost): Promise<Comparison> {
    const query = sql`with ${compared(post)} select differs, stale from found`;
    const [row] = await database.run((db) => db.execute<{ differs: boolean; stale: boolean }>(query));
    if (row === undefined) return 'missing';
    if (!row.differs) return 'same';
    return row.stale ? 'stale' : 'different';
  },
  /** The ids among these of posts that have another version than their file was imported as, if they came from one. */
  async changedSinceImport(ids: readonly string[]): Promise<Set<string>> {
    const isChanged = sql`${posts.version} is distinct from ${postSources.version}`;
    const rows = await findSources(database, ids, (some) => and(inArray(posts.id, some), isChanged));
    return new Set(rows.map(({ id }) => id));
  },
  /** The posts that have these slugs, by slug. */
  async slugOwners(slugs: readonly string[]): Promise<Map<string, SlugOwner>> {
    const rows = await findSources(database, slugs, (some) => inArray(posts.slug, some));
    return new Map(rows.map(({ slug, ...owner }) => [slug, owner]));
  },
  /** Records that the post's file now holds this version. */
  async markExported(id: string, file: PostSource & { version: number }): Promise<void> {
    await database.run((db) => db.update(postSources).set(file).where(eq(postSources.postId, id)));
  },
});

/** A second attempt sees what another writer did between the statement's read and its write. */
const maxAttempts = 5;

async function store(database: Database, post: ImportedPost, force: boolean): Promise<Imported> {
  for (let attempt = 1; attempt <= maxAttempts; attempt++) {
    const storing = database.run((db) => db.execute<{ outcome: Imported | 'stale' }>(upsert(post, force)));
    const [row] = await storing.catch((cause) => {
      if (!isUniqueViolation(cause, 'posts_slug')) throw cause;
      // Of equal posts that are stored at once, one can meet the slug of another before its id.
      if (attempt > 1) throw new Failure('slug_taken', { cause });
      return [];
    });
    if (row?.outcome === 'stale') throw new Failure('precondition_failed');
    if (row !== undefined) return row.outcome;
  }
  throw new TypeError('the post came and went at every attempt');
}

/**
 * SQL for the given post and the stored post with its id, if there is one. A later time of change than the post has
 * counts as a difference; an earlier one does not, because people who edit an exported file leave it as it is.
 */
function compared({ source, ...post }: ImportedPost): SQL {
  const given = JSON.stringify({ ...post, id: post.id ?? uuidv7(), ...source });
  return sql`
    given as (
      select *, coalesce("publishedAt", case status when 'published' then coalesce("createdAt", now()) end) as published
      from json_to_record(${given}::text::json) as given (
        id uuid, title text, content text, author text, "defaultAuthor" text, tags text[], slug text, status text,
        "publishedAt" timestamptz(3), "createdAt" timestamptz(3), "updatedAt" timestamptz(3), version integer,
        path text, head text
      )
    ), found as (
      select posts.id, posts.version,
        (posts.title, posts.content, posts.tags, posts.slug, posts.status)
          is distinct from (given.title, given.content, given.tags, given.slug, given.status)
        or posts.author is distinct from coalesce(given.author, posts.author)
        or posts.created_at is distinct from coalesce("createdAt", posts.created_at)
        or posts.published_at is distinct from coalesce("publishedAt", posts.published_at, published)
        or posts.updated_at < coalesce("updatedAt", posts.updated_at) as differs,
        posts.version is distinct from source.version and posts.version is distinct from given.version
          and coalesce(source.version, given.version) is not null as stale
      from posts join given using (id) left join post_sources as source on source.post_id = posts.id
    )`;
}

/**
 * The post, and the file it came from, in one statement, which gives no row when another client made or removed the
 * post meanwhile. A post that is the same is not written at all: its search vector would be made anew.
 */
const upsert = (post: ImportedPost, force: boolean): SQL => sql`
    with ${compared(post)}, created as (
      insert into posts
        (id, title, content, author, tags, slug, status, published_at, created_at, updated_at, version)
      select id, title, content, coalesce(author, "defaultAuthor"), tags, slug, status, published,
        coalesce("createdAt", now()), coalesce("updatedAt", "createdAt", now()), coalesce(version, 1)
      from given where not exists (select from found)
      on conflict (id) do nothing
      returning id, version
    ), changed as (
      update posts set
        title = given.title, content = given.content, tags = given.tags, slug = given.slug, status = given.status,
        author = coalesce(given.author, posts.author),
        published_at = coalesce("publishedAt", posts.published_at, published),
        created_at = coalesce("createdAt", posts.created_at),
        updated_at = case when "updatedAt" > posts.updated_at then "updatedAt" else now() end,
        version = posts.version + 1
      from given where posts.id = (select id from found where differs and (${force} or not stale))
        and posts.version = (select version from found)
      returning posts.id, posts.version
    ), stored as (
      select id, version, 'created' as outcome from created
      union all select id, version, 'changed' from changed
      union all select id, version, 'unchanged' from found where not differs
    ), sourced as (
      insert into post_sources as source (post_id, version, path, head)
      select stored.id, stored.version, path, head from stored, given where path is not null
      on conflict (post_id) do update set version = excluded.version, path = excluded.path, head = excluded.head
      where (source.version, source.path, source.head)
        is distinct from (excluded.version, excluded.path, excluded.head)
    )
    select outcome from stored
    union all select 'stale' from found where differs and stale and not ${force}`;

const keysAtOnce = 1000;

/** The posts that have some of these keys, with the paths of their files. */
async function findSources(
  database: Database,
  keys: readonly string[],
  having: (some: string[]) => SQL | undefined,
): Promise<(SlugOwner & { slug: string })[]> {
  const found = [];
  for (let start = 0; start < keys.length; start += keysAtOnce) {
    const rows = await database.run((db) =>
      db
        .select({ slug: posts.slug, id: posts.id, path: postSources.path })
        .from(posts)
        .leftJoin(postSources, eq(postSources.postId, posts.id))
        .where(having(keys.slice(start, start + keysAtOnce))),
    );
    found.push(...rows);
  }
  return found;
}
