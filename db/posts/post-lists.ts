import type { Post, PostStatus } from '../../shared/contracts/contract.js';
import type { Database, Statements } from '../database/client.js';
import type { Drizzle } from '../database/connections.js';
import { and, asc, count, desc, eq, type SQL, sql } from '../database/drizzle.js';
import { posts } from '../schema.js';
import { buildOnce, isPublished, postColumns, timeText, toIsoTime } from './post-rows.js';

/** A place in the list: that of the post with these values. */
export interface Position {
  sortedAt: Date;
  id: string;
}

/** Which posts a page shows; conditions that are absent hold for every post. */
export interface PostFilter {
  limit: number;
  /** Only what the list has after that place, which is older. */
  after?: Position | undefined;
  /** Only what the list has right before that place, which is newer. */
  before?: Position | undefined;
  tag?: string | undefined;
  author?: string | undefined;
  /** Words, `"a phrase"`, `-word` and `or`, as people type them into a search engine. */
  search?: string | undefined;
  drafts: boolean;
  status?: PostStatus | undefined;
}

/** Bytes of content after which a page ends, so that a few clients with long posts cannot fill the memory. */
const maxBytesPerPage = 2 * 1024 * 1024;

const { placeholder } = sql;

const newestFirst = [desc(posts.sortedAt), desc(posts.id)];
const oldestFirst = [asc(posts.sortedAt), asc(posts.id)];

/** The versions of the newest published posts. */
export const selectNewest = (db: Drizzle) =>
  db
    .select({ id: posts.id, version: posts.version, updatedAt: timeText<string>(posts.updatedAt) })
    .from(posts)
    .where(isPublished)
    .orderBy(...newestFirst)
    .limit(placeholder('count'))
    .prepare('newest-posts');

/**
 * Reads a list. Drizzle builds its query once for each shape of the filter. PostgreSQL prepares it, too, but for a
 * search, which it has to plan for its values: a query without a name is not prepared there.
 */
export function listReader<Row>(select: (db: Drizzle, filter: PostFilter) => ListQuery<Row>) {
  const build = buildOnce(
    (db, filter: PostFilter) =>
      select(db, filter).prepare(purposeOf(filter) === 'search' ? undefined : 'posts'),
    shapeOf,
  );
  return (statements: Statements, filter: PostFilter): Promise<Row[]> =>
    statements.run((db) => build(db, filter).execute(valuesOf(filter)), purposeOf(filter));
}

interface ListQuery<Row> {
  /** Drizzle's types ask for a name; its session (`postgres-js/session.js`) has PostgreSQL prepare what has one. */
  prepare(name: string | undefined): { execute(values: Record<string, unknown>): Promise<Row[]> };
}

/** The shape of a filter: one of at most 192. */
const shapeOf = ({ drafts, status, ...values }: PostFilter): string =>
  [drafts, status, ...shapingValues.map((name) => values[name] !== undefined)].join();

const shapingValues = ['after', 'before', 'tag', 'author', 'search'] as const;

/** The values of a list's placeholders. */
const valuesOf = ({ limit, after, before, tag, author, search }: PostFilter) => ({
  limit,
  oneMore: limit + 1,
  afterAt: after?.sortedAt.toISOString(),
  afterId: after?.id,
  beforeAt: before?.sortedAt.toISOString(),
  beforeId: before?.id,
  tags: tag === undefined ? undefined : formsOf(tag),
  author,
  search,
});

type ListValue = keyof ReturnType<typeof valuesOf>;
const value = (name: ListValue) => placeholder(name);

/** One page, newest first, without posts that make it too long. `more` says whether there is one after the row's. */
export function selectPage(db: Drizzle, filter: PostFilter) {
  // One more shows that there are more. On the way back it would be on the page, and `selectNeighbours` shows it.
  const found = db
    .select({ ...postColumns, sortedAt: posts.sortedAt })
    .from(posts)
    .where(conditionOf(filter))
    .orderBy(...orderOf(filter))
    .limit(value(filter.before ? 'limit' : 'oneMore'));
  const order = sql.join(orderOf(filter), sql`, `);
  const earlier = sql`(order by ${order} rows between unbounded preceding and 1 preceding)`;
  const measured = db
    .select({
      ...postColumns,
      sortedAt: posts.sortedAt,
      // PostgreSQL stores the length with the text: nothing is decompressed for it.
      bytesBefore: sql`coalesce(sum(octet_length(${posts.content})) over ${earlier}, 0)`.as('bytes_before'),
      more: sql`lead(${posts.id}) over ${earlier} is not null`.as('more'),
    })
    .from(found.as('posts'));
  return db
    .select({ ...postColumns, more: sql<boolean>`more` })
    .from(measured.as('posts'))
    .where(sql`bytes_before < ${sql.raw(String(maxBytesPerPage))}`)
    .orderBy(...newestFirst)
    .limit(value('limit'));
}

/** A published post as a list for people shows it. */
export interface PostSummary
  extends Pick<Post, 'id' | 'title' | 'author' | 'tags' | 'slug' | 'version' | 'updatedAt'> {
  /** The beginning of the content: 1,001 characters, so that it shows whether there are more than 1,000. */
  beginning: string;
  publishedAt: string;
}

const summaryColumns = {
  id: posts.id,
  title: posts.title,
  beginning: sql<string>`left(${posts.content}, 1001)`,
  author: posts.author,
  tags: posts.tags,
  slug: posts.slug,
  version: posts.version,
  updatedAt: timeText<string>(posts.updatedAt),
  // A published post is sorted by when it was published.
  publishedAt: timeText<string>(posts.sortedAt),
};

/** The summaries of one page, from its place on, and the post after it, if there is one. */
export const selectSummaries = (db: Drizzle, filter: PostFilter) =>
  db
    .select(summaryColumns)
    .from(posts)
    .where(conditionOf(filter))
    .orderBy(...orderOf(filter))
    .limit(value('oneMore'));

/** The summary of a row whose times are as PostgreSQL writes them. */
export const toSummary = (row: PostSummary): PostSummary => ({
  ...row,
  updatedAt: toIsoTime(row.updatedAt),
  publishedAt: toIsoTime(row.publishedAt),
});

/** The order in which the posts of a page are found: from its place on, in either direction. */
const orderOf = ({ before }: PostFilter): SQL[] => (before === undefined ? newestFirst : oldestFirst);

/** The places of a page's first and last post. */
export interface PageEnds {
  newest: Position;
  oldest: Position;
}

type Placed = Pick<Post, 'id' | 'publishedAt'> & Partial<Pick<Post, 'createdAt'>>;

/** Both ends of an empty page are the place of the request, with that post on the side it came from. */
export function endsOf(page: readonly Placed[], { after, before }: PostFilter): PageEnds | undefined {
  const [first, last] = [page[0], page.at(-1)];
  if (first && last) return { newest: placeOf(first), oldest: placeOf(last) };
  const place = (after && { ...after, id: leastId }) ?? (before && { ...before, id: greatestId });
  return place && { newest: place, oldest: place };
}

const leastId = '00000000-0000-0000-0000-000000000000';
const greatestId = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/** Computes `sortedAt` in the same way as the generated column `sorted_at`. */
const placeOf = ({ publishedAt, createdAt = '', id }: Placed): Position => ({
  sortedAt: new Date(publishedAt ?? createdAt),
  id,
});

/** The posts of a list beyond the ends of a page. */
export interface Neighbours {
  /** How many posts are newer, counted to one more than a page has. */
  newer: number;
  /** Whether there are older ones. */
  older: boolean;
}

/** Counts the posts before one place of a list, the newest of a page, and looks for one after another, its oldest. */
export function selectNeighbours(db: Drizzle, { before, after, ...list }: PostFilter) {
  const newer = db
    .select({ id: posts.id })
    .from(posts)
    .where(conditionOf({ ...list, before }))
    .orderBy(...orderOf({ ...list, before }))
    .limit(value('oneMore'));
  // Not `exists`, for which PostgreSQL drops order and limit, and may then read the table from its beginning.
  const older = db
    .select({ id: posts.id })
    .from(posts)
    .where(conditionOf({ ...list, after }))
    .orderBy(...orderOf({ ...list, after }))
    .limit(1);
  return db
    .select({ newer: sql<number>`count(*)::int`, older: sql<boolean>`${older} is not null` })
    .from(newer.as('found'));
}

/** Whether there is nothing to be found: a query of contradictions would read what it then leaves out. */
export const findsNothing = ({ drafts, status }: PostFilter): boolean => status === 'draft' && !drafts;

/** A search where no index has the page's order; a tag or word is in every post or in one, so no plan suits all. */
const purposeOf = ({ tag, search }: PostFilter) => ((tag ?? search) === undefined ? undefined : 'search');

/** Composed, as tags are stored, and decomposed, as releases up to 0.9.0 have stored them where they came so. */
const formsOf = (tag: string): string[] => [...new Set([tag.normalize('NFC'), tag.normalize('NFD')])];

function conditionOf({ after, before, tag, author, search, drafts, status }: PostFilter): SQL | undefined {
  const place = sql`(${posts.sortedAt}, ${posts.id})`;
  return and(
    drafts && status !== 'published' ? undefined : isPublished,
    status === 'draft' ? sql`${posts.status} = 'draft'` : undefined,
    after && sql`${place} < (${value('afterAt')}, ${value('afterId')})`,
    before && sql`${place} > (${value('beforeAt')}, ${value('beforeId')})`,
    tag === undefined ? undefined : sql`${posts.tags} && ${sql.param(value('tags'), posts.tags)}`,
    author === undefined ? undefined : eq(posts.author, value('author')),
    search === undefined
      ? undefined
      : sql`${posts.search} @@ websearch_to_tsquery('english', ${value('search')})`,
  );
}

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
