import type { Database, Drizzle } from '../database/client.js';
import { and, arrayContains, desc, eq, type SQL, sql } from '../database/drizzle.js';
import { posts } from '../schema.js';
import { oncePerConnection, postColumns, toPost, versionColumns } from './post-rows.js';
import type { PostFilter, PostStore } from './post-store.js';

/** Bytes of content after which a page ends, so that a few clients with long posts cannot fill the memory. */
const maxBytesPerPage = 2 * 1024 * 1024;

// A literal, not a parameter: a generic plan could not use the partial index of published posts.
const isPublished = sql`${posts.status} = 'published'`;
const newestFirst = [desc(posts.sortedAt), desc(posts.id)];

export function createPostLists(database: Database): Pick<PostStore, 'list' | 'newest'> {
  const newest = oncePerConnection((db) =>
    db
      .select(versionColumns)
      .from(posts)
      .where(isPublished)
      .orderBy(...newestFirst)
      .limit(sql.placeholder('count'))
      .prepare('newest-posts'),
  );

  return {
    list: async (filter) => {
      const rows = await database.run((db) => pageOf(db, filter), isSearch(filter) ? 'search' : 'request');
      const last = rows.at(-1);
      const next = last?.more ? { sortedAt: last.sortedAt, id: last.id } : undefined;
      return { posts: rows.map(toPost), next };
    },
    newest: async (count) => {
      const rows = await database.run((db) => newest(db).execute({ count }), 'feed');
      return rows.map((row) => ({ ...row, updatedAt: row.updatedAt.toISOString() }));
    },
  };
}

/** One page: the database leaves out what makes it too long, and says for each post whether another follows. */
function pageOf(db: Drizzle, filter: PostFilter) {
  const found = db
    .select({ ...postColumns, sortedAt: posts.sortedAt })
    .from(posts)
    .where(and(...conditionsOf(filter)))
    .orderBy(...newestFirst)
    .limit(filter.limit + 1)
    .as('found');
  const before = sql`order by ${found.sortedAt} desc, ${found.id} desc rows between unbounded preceding and 1 preceding`;
  const measured = db
    .select({
      ...found._.selectedFields,
      // PostgreSQL stores the length with the text: nothing is decompressed for it.
      bytesBefore: sql`coalesce(sum(octet_length(${found.content})) over (${before}), 0)`.as('bytes_before'),
      more: sql<boolean>`lead(${found.id}) over (${before}) is not null`.as('more'),
    })
    .from(found)
    .as('measured');
  const { bytesBefore, ...columns } = measured._.selectedFields;
  const page = db
    .select(columns)
    .from(measured)
    .where(sql`${bytesBefore} < ${maxBytesPerPage}`)
    .orderBy(desc(measured.sortedAt), desc(measured.id))
    .limit(filter.limit);
  // A tag or a word can be in every post or in one, so a generic plan would be bad: searches are planned for their values,
  // all other lists once per connection.
  return isSearch(filter) ? page : page.prepare('posts').execute();
}

/** Whether no index has the order of the page, so that many posts may be read for a few. */
const isSearch = ({ tag, search }: PostFilter): boolean => tag !== undefined || search !== undefined;

function conditionsOf({ after, tag, author, search, drafts }: PostFilter): (SQL | undefined)[] {
  return [
    drafts ? undefined : isPublished,
    after && sql`(${posts.sortedAt}, ${posts.id}) < (${after.sortedAt.toISOString()}, ${after.id})`,
    tag === undefined ? undefined : arrayContains(posts.tags, [tag]),
    author === undefined ? undefined : eq(posts.author, author),
    search === undefined ? undefined : sql`${posts.search} @@ websearch_to_tsquery('english', ${search})`,
  ];
}
