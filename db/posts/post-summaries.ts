import type { Post } from '../../shared/contract.js';
import { type PostFilter, selectFound } from './post-lists.js';
import { type Statement, toIsoTime } from './post-rows.js';

/** A published post as a list for people shows it. */
export interface PostSummary extends Pick<Post, 'id' | 'title' | 'author' | 'tags' | 'slug'> {
  /** The beginning of the content: 1,001 characters, so that it shows whether there are more than 1,000. */
  beginning: string;
  publishedAt: string;
}

// A published post is sorted by when it was published.
const summaryFields =
  'id, title, left(content, 1001) as beginning, author, tags, slug, sorted_at as "publishedAt"';

/** One page, from its place on, and the post after it, if there is one. */
export const selectSummaries = (filter: PostFilter): Statement =>
  selectFound(summaryFields, { ...filter, limit: filter.limit + 1 });

/** The summary of a row whose times are as PostgreSQL writes them. */
export const toSummary = (row: PostSummary): PostSummary => ({
  ...row,
  publishedAt: toIsoTime(row.publishedAt),
});
