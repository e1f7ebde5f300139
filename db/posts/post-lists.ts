import type { Drizzle } from '../database/connections.js';
import { and, arrayContains, desc, eq, type SQL, sql } from '../database/drizzle.js';
import { posts } from '../schema.js';
import { isPublished, postColumns, versionColumns } from './post-rows.js';

/** A place in the list: right after the post with these values. */
export interface Position {
  sortedAt: Date;
  id: string;
}

/** Which posts a page shows; conditions that are absent hold for every post. */
export interface PostFilter {
  /** Maximum number of posts on the page. */
  limit: number;
  after?: Position;
  tag?: string;
  author?: string;
  /** Words, `"a phrase"`, `-word` and `or`, as people type them into a search engine. */
  search?: string;
  /** Whether drafts are shown too. */
  drafts: boolean;
}

/** Bytes of content after which a page ends, so that a few clients with long posts cannot fill the memory. */
const maxBytesPerPage = 2 * 1024 * 1024;

const newestFirst = [desc(posts.sortedAt), desc(posts.id)];

/** The versions of the newest published posts. */
export const selectNewest = (db: Drizzle) =>
  db
    .select(versionColumns)
    .from(posts)
    .where(isPublished)
    .orderBy(...newestFirst)
    .limit(sql.placeholder('count'))
    .prepare('newest-posts');

/** One page: the database leaves out what makes it too long, and says for each post whether another follows. */
export function selectPage(db: Drizzle, filter: PostFilter) {
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
export const isSearch = ({ tag, search }: PostFilter): boolean => tag !== undefined || search !== undefined;

/** The conditions of a filter, its position included. */
export function conditionsOf({ after, tag, author, search, drafts }: PostFilter): (SQL | undefined)[] {
  return [
    drafts ? undefined : isPublished,
    after && sql`(${posts.sortedAt}, ${posts.id}) < (${after.sortedAt.toISOString()}, ${after.id})`,
    tag === undefined ? undefined : arrayContains(posts.tags, [tag]),
    author === undefined ? undefined : eq(posts.author, author),
    search === undefined ? undefined : sql`${posts.search} @@ websearch_to_tsquery('english', ${search})`,
  ];
}
