import type { PostStatus } from '../../shared/contract.js';
import type { Drizzle } from '../database/connections.js';
import { and, arrayContains, asc, desc, eq, type SQL, sql } from '../database/drizzle.js';
import { posts } from '../schema.js';
import { isPublished, postColumns, versionColumns } from './post-rows.js';

/** A place in the list: that of the post with these values. */
export interface Position {
  sortedAt: Date;
  id: string;
}

/** Which posts a page shows; conditions that are absent hold for every post. */
export interface PostFilter {
  limit: number;
  /** Only what the list has after that place, which is older. */
  after?: Position;
  /** Only what the list has right before that place, which is newer. */
  before?: Position;
  tag?: string;
  author?: string;
  /** Words, `"a phrase"`, `-word` and `or`, as people type them into a search engine. */
  search?: string;
  drafts: boolean;
  status?: PostStatus;
}

/** Bytes of content after which a page ends, so that a few clients with long posts cannot fill the memory. */
const maxBytesPerPage = 2 * 1024 * 1024;

const newestFirst = [desc(posts.sortedAt), desc(posts.id)];
const oldestFirst = [asc(posts.sortedAt), asc(posts.id)];

/** The order in which the posts of a page are found: from its place on, in either direction. */
export const orderOf = ({ before }: Pick<PostFilter, 'before'>): SQL[] =>
  before === undefined ? newestFirst : oldestFirst;

/** The versions of the newest published posts. */
export const selectNewest = (db: Drizzle) =>
  db
    .select(versionColumns)
    .from(posts)
    .where(isPublished)
    .orderBy(...newestFirst)
    .limit(sql.placeholder('count'))
    .prepare('newest-posts');

/** One page, newest first, within its bound on bytes; each post says whether another was found after it. */
export function selectPage(db: Drizzle, filter: PostFilter) {
  const found = db
    .select({ ...postColumns, sortedAt: posts.sortedAt })
    .from(posts)
    .where(and(...conditionsOf(filter)))
    .orderBy(...orderOf(filter))
    // One more shows that there are more. On the way back it would be on the page, and `selectNeighbours` shows it.
    .limit(filter.before ? filter.limit : filter.limit + 1)
    .as('found');
  const way = filter.before ? sql`asc` : sql`desc`;
  const window = sql`order by ${found.sortedAt} ${way}, ${found.id} ${way} rows between unbounded preceding and 1 preceding`;
  const measured = db
    .select({
      ...found._.selectedFields,
      // PostgreSQL stores the length with the text: nothing is decompressed for it.
      bytesBefore: sql`coalesce(sum(octet_length(${found.content})) over (${window}), 0)`.as('bytes_before'),
      more: sql<boolean>`lead(${found.id}) over (${window}) is not null`.as('more'),
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
  // A tag or a word can be in every post or in one, so a generic plan would be bad: searches are planned for their
  // values, all other lists once per connection.
  return isSearch(filter) ? page : page.prepare('posts').execute();
}

/** The places of a page's first and last post. */
export interface PageEnds {
  newest: Position;
  oldest: Position;
}

/** Both ends of an empty page are the place of the request, with that post on the side it came from. */
export function endsOf(rows: readonly Position[], { after, before }: PostFilter): PageEnds | undefined {
  const [first, last] = [rows[0], rows.at(-1)];
  if (first && last) return { newest: placeOf(first), oldest: placeOf(last) };
  const place = (after && { ...after, id: leastId }) ?? (before && { ...before, id: greatestId });
  return place && { newest: place, oldest: place };
}

const leastId = '00000000-0000-0000-0000-000000000000';
const greatestId = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

const placeOf = ({ sortedAt, id }: Position): Position => ({ sortedAt, id });

/** The posts of a list beyond the ends of a page. */
export interface Neighbours {
  /** How many posts are newer, counted to one more than a page has. */
  newer: number;
  /** Whether there are older ones. */
  older: boolean;
}

/** The posts of a page's list before its newest and after its oldest post. */
export async function selectNeighbours(
  db: Drizzle,
  { after: _, before: __, ...list }: PostFilter,
  { newest, oldest }: PageEnds,
): Promise<Neighbours> {
  const beyond = (place: Partial<PostFilter>, limit: number) =>
    db
      .select({ id: posts.id })
      .from(posts)
      .where(and(...conditionsOf({ ...list, ...place })))
      .orderBy(...orderOf(place))
      .limit(limit);
  const newer = beyond({ before: newest }, list.limit + 1);
  const older = beyond({ after: oldest }, 1);
  // Not `exists`, for which PostgreSQL drops order and limit, and may then read the table from its beginning.
  const [found] = await db.execute<{ newer: number; older: boolean }>(
    sql`select (select count(*)::int from (${newer}) as found) as newer, (${older}) is not null as older`,
  );
  return { newer: found?.newer ?? 0, older: found?.older ?? false };
}

/** Whether there is nothing to be found: a query of contradictions would read what it then leaves out. */
export const findsNothing = ({ drafts, status }: PostFilter): boolean => status === 'draft' && !drafts;

/** Whether no index has the order of the page, so that many posts may be read for a few. */
export const isSearch = ({ tag, search }: PostFilter): boolean => tag !== undefined || search !== undefined;

/** The conditions of a filter, its position included. */
export function conditionsOf(filter: PostFilter): (SQL | undefined)[] {
  const { after, before, tag, author, search, drafts, status } = filter;
  return [
    drafts && status !== 'published' ? undefined : isPublished,
    status === 'draft' ? eq(posts.status, 'draft') : undefined,
    after && sql`(${posts.sortedAt}, ${posts.id}) < (${after.sortedAt.toISOString()}, ${after.id})`,
    before && sql`(${posts.sortedAt}, ${posts.id}) > (${before.sortedAt.toISOString()}, ${before.id})`,
    tag === undefined ? undefined : arrayContains(posts.tags, [tag]),
    author === undefined ? undefined : eq(posts.author, author),
    search === undefined ? undefined : sql`${posts.search} @@ websearch_to_tsquery('english', ${search})`,
  ];
}
