import type { Post, PostStatus } from '../../shared/contracts/contract.js';
import { postFields, type Statement, toIsoTime } from './post-rows.js';

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

const newestFirst = 'posts.sorted_at desc, posts.id desc';
const oldestFirst = 'posts.sorted_at, posts.id';

/** The versions of the newest published posts. */
export const selectNewest = (count: number): Statement => ({
  text: `select id, version, updated_at as "updatedAt" from posts where status = 'published'
    order by ${newestFirst} limit $1`,
  values: [count],
  purpose: 'feed',
});

/** One page, newest first, without posts that make it too long. `more` says whether there is one after the row's. */
export function selectPage(filter: PostFilter): Statement {
  // One more shows that there are more. On the way back it would be on the page, and `selectNeighbours` shows it.
  const limit = filter.before ? filter.limit : filter.limit + 1;
  const columns =
    'id, title, content, author, tags, slug, status, published_at, created_at, updated_at, version, sorted_at';
  const { text, values, purpose } = selectFound(columns, { ...filter, limit });
  return {
    purpose,
    // PostgreSQL stores the length with the text: nothing is decompressed for it.
    values: [...values, filter.limit],
    text: `select ${postFields}, more from (
      select *, coalesce(sum(octet_length(content)) over earlier, 0) as bytes_before,
        lead(id) over earlier is not null as more
      from (${text}) as posts
      window earlier as (order by ${orderOf(filter)} rows between unbounded preceding and 1 preceding)
    ) as posts where bytes_before < ${maxBytesPerPage} order by ${newestFirst} limit $${values.length + 1}`,
  };
}

/** A published post as a list for people shows it. */
export interface PostSummary
  extends Pick<Post, 'id' | 'title' | 'author' | 'tags' | 'slug' | 'version' | 'updatedAt'> {
  /** The beginning of the content: 1,001 characters, so that it shows whether there are more than 1,000. */
  beginning: string;
  publishedAt: string;
}

// A published post is sorted by when it was published.
const summaryFields = `id, title, left(content, 1001) as beginning, author, tags, slug, version,
  updated_at as "updatedAt", sorted_at as "publishedAt"`;

/** The summaries of one page, from its place on, and the post after it, if there is one. */
export const selectSummaries = (filter: PostFilter): Statement =>
  selectFound(summaryFields, { ...filter, limit: filter.limit + 1 });

/** The summary of a row whose times are as PostgreSQL writes them. */
export const toSummary = (row: PostSummary): PostSummary => ({
  ...row,
  updatedAt: toIsoTime(row.updatedAt),
  publishedAt: toIsoTime(row.publishedAt),
});

/** These columns of the first posts that the filter finds, from its place on. */
function selectFound(columns: string, filter: PostFilter): Statement {
  const values: unknown[] = [];
  return { text: foundIn(columns, filter, values), values, purpose: purposeOf(filter) };
}

/** Adds the values of the parameters to `values`. */
function foundIn(columns: string, filter: PostFilter, values: unknown[]): string {
  const parameter = (value: unknown) => `$${values.push(value)}`;
  const conditions = conditionsOf(filter, parameter).filter((condition) => condition !== undefined);
  const where = conditions.length === 0 ? '' : `where ${conditions.join(' and ')}`;
  return `select ${columns} from posts ${where} order by ${orderOf(filter)} limit ${parameter(filter.limit)}`;
}

/** The order in which the posts of a page are found: from its place on, in either direction. */
const orderOf = ({ before }: Pick<PostFilter, 'before'>): string =>
  before === undefined ? newestFirst : oldestFirst;

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

/** Counts the posts before the newest post of a page, and looks for one after its oldest. */
export function selectNeighbours(
  { after: _, before: __, ...list }: PostFilter,
  { newest, oldest }: PageEnds,
): Statement {
  const values: unknown[] = [];
  const newer = foundIn('id', { ...list, before: newest, limit: list.limit + 1 }, values);
  const older = foundIn('id', { ...list, after: oldest, limit: 1 }, values);
  // Not `exists`, for which PostgreSQL drops order and limit, and may then read the table from its beginning.
  const text = `select (select count(*)::int from (${newer}) as found) as newer, (${older}) is not null as older`;
  return { text, values, purpose: purposeOf(list) };
}

/** Whether there is nothing to be found: a query of contradictions would read what it then leaves out. */
export const findsNothing = ({ drafts, status }: PostFilter): boolean => status === 'draft' && !drafts;

/** A search where no index has the page's order; a tag or word is in every post or in one, so no plan suits all. */
const purposeOf = ({ tag, search }: PostFilter) => ((tag ?? search) === undefined ? undefined : 'search');

/** Composed, as tags are stored, and decomposed, as releases up to 0.9.0 have stored them where they came so. */
const formsOf = (tag: string): string[] => [...new Set([tag.normalize('NFC'), tag.normalize('NFD')])];

function conditionsOf(filter: PostFilter, parameter: (value: unknown) => string): (string | undefined)[] {
  const { after, before, tag, author, search, drafts, status } = filter;
  const place = ({ sortedAt, id }: Position) => `(${parameter(sortedAt.toISOString())}, ${parameter(id)})`;
  return [
    // Literals, not parameters: a generic plan could not use the partial index of published posts.
    drafts && status !== 'published' ? undefined : `status = 'published'`,
    status === 'draft' ? `status = 'draft'` : undefined,
    after && `(sorted_at, id) < ${place(after)}`,
    before && `(sorted_at, id) > ${place(before)}`,
    tag === undefined ? undefined : `tags && array[${formsOf(tag).map(parameter).join(', ')}]`,
    author === undefined ? undefined : `author = ${parameter(author)}`,
    search === undefined ? undefined : `search @@ websearch_to_tsquery('english', ${parameter(search)})`,
  ];
}
