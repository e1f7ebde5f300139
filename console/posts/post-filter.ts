import type { Post, PostStatus } from '../../shared/contract.ts';

/** Which posts the list shows; empty parts hold for every post. */
export interface PostListFilter {
  readonly search: string;
  readonly status: PostStatus | '';
}

/** The posts as far as they were read. */
export interface Listed {
  readonly posts: readonly Post[];
  readonly next: string | null;
}

/** What can be chosen, in this order. */
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

/** The fragment of the list with this filter. */
export function fragmentOf(filter: PostListFilter): string {
  const query = queryOf(filter);
  return query.size === 0 ? '#/posts' : `#/posts?${query}`;
}

/** The address of a page of the list, behind what was read before. */
export function addressOfPage(filter: PostListFilter, before?: Listed): string {
  const query = queryOf(filter);
  query.set('envelope', 'true');
  query.set('limit', String(pageSize));
  if (before?.next) query.set('cursor', before.next);
  return `/admin/blogs?${query}`;
}

function queryOf({ search, status }: PostListFilter): URLSearchParams {
  const query = new URLSearchParams();
  if (search !== '') query.set('q', search);
  if (status !== '') query.set('status', status);
  return query;
}

const none = {
  '': 'There are no posts yet.',
  published: 'There are no published posts.',
  draft: 'There are no drafts.',
} as const;

/** How many posts were found, as a sentence. */
export function describeCount({ posts, next }: Listed, { search, status }: PostListFilter): string {
  if (posts.length === 0) return search === '' ? none[status] : 'Nothing was found.';
  const found = search === '' ? '' : ' found';
  const noun = status === 'draft' ? 'draft' : 'post';
  const count = `${posts.length} ${noun}${posts.length === 1 ? '' : 's'}`;
  return next ? `The first ${count}${found}.` : `${count}${found}.`;
}
