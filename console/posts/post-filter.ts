import type { Post, PostStatus } from '../../shared/contracts/contract.ts';
import { addressOf } from '../parts/paged-list.ts';

/** Which posts the list shows; empty parts hold for every post. */
export interface PostListFilter {
  readonly search: string;
  readonly status: PostStatus | '';
}

/** The choices, in this order. */
export const statuses: readonly (readonly [status: PostListFilter['status'], text: string])[] = [
  ['', 'All'],
  ['published', 'Published'],
  ['draft', 'Drafts'],
];

const pageSize = 20;

/** The filter in a fragment's query; a status that there is not counts as none. */
export function readFilter(query: URLSearchParams): PostListFilter {
  const status = statuses.find(([one]) => one === query.get('status'))?.[0] ?? '';
  return { search: query.get('q') ?? '', status };
}

const parametersOf = ({ search, status }: PostListFilter) => ({ q: search, status });

/** The fragment of the list with this filter. */
export const fragmentOf = (filter: PostListFilter): string => addressOf('#/posts', parametersOf(filter));

/** The address of a page of the list; `cursor` is the `next` of the one before. */
export const addressOfPage = (filter: PostListFilter, cursor?: string): string =>
  addressOf('/admin/blogs', { ...parametersOf(filter), envelope: 'true', limit: String(pageSize), cursor });

const none = {
  '': 'There are no posts yet.',
  published: 'There are no published posts.',
  draft: 'There are no drafts.',
} as const;

/** How many posts were found, as a sentence. */
export function describeCount(
  posts: readonly Post[],
  next: string | null,
  { search, status }: PostListFilter,
) {
  if (posts.length === 0) return search === '' ? none[status] : 'No posts found.';
  const found = search === '' ? '' : ' found';
  const noun = status === 'draft' ? 'draft' : 'post';
  const count = `${posts.length} ${noun}${posts.length === 1 ? '' : 's'}`;
  return next ? `The first ${count}${found}.` : `${count}${found}.`;
}
