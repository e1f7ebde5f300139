import type { Drizzle } from '../database/connections.js';
import { and, sql } from '../database/drizzle.js';
import { posts } from '../schema.js';
import { conditionsOf, isSearch, orderOf, type PostFilter } from './post-lists.js';

/** A published post as a list for people shows it. */
export interface PostSummary {
  id: string;
  title: string | null;
  /** The beginning of the content: 1,001 characters, so that it shows whether there are more than 1,000. */
  beginning: string;
  author: string;
  tags: string[];
  slug: string;
  publishedAt: string;
}

const summaryColumns = {
  id: posts.id,
  title: posts.title,
  beginning: sql<string>`left(${posts.content}, 1001)`,
  author: posts.author,
  tags: posts.tags,
  slug: posts.slug,
  sortedAt: posts.sortedAt,
};

/** One page from its place on, and the post after it, if there is one; prepared for the reason of `selectPage`. */
export function selectSummaries(db: Drizzle, filter: PostFilter) {
  const page = db
    .select(summaryColumns)
    .from(posts)
    .where(and(...conditionsOf(filter)))
    .orderBy(...orderOf(filter))
    .limit(filter.limit + 1);
  return isSearch(filter) ? page : page.prepare('post-summaries').execute();
}

type SummaryRow = Awaited<ReturnType<typeof selectSummaries>>[number];

/** A published post is sorted by when it was published. */
export const toSummary = ({ sortedAt, ...row }: SummaryRow): PostSummary => ({
  ...row,
  publishedAt: sortedAt.toISOString(),
});
