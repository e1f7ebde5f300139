import { describe, expect, it } from 'vitest';
import {
  addressOfPage,
  describeCount,
  fragmentOf,
  type PostListFilter,
  readFilter,
} from '../../../console/posts/post-filter.ts';
import type { Post } from '../../../shared/contract.ts';

const all: PostListFilter = { search: '', status: '' };
const listed = (count: number, next: string | null = null) => ({ posts: Array<Post>(count), next });

describe('readFilter', () => {
  it.each<PostListFilter>([all, { search: 'a & b', status: 'draft' }, { search: '', status: 'published' }])(
    'reads what fragmentOf has written: %o',
    (filter) => {
      const [, query = ''] = fragmentOf(filter).split('?');
      expect(readFilter(new URLSearchParams(query))).toEqual(filter);
    },
  );

  it.each(['Draft', 'all', '', '__proto__'])('takes the status %j for none', (status) => {
    expect(readFilter(new URLSearchParams({ status }))).toEqual(all);
  });
});

describe('addressOfPage', () => {
  it('asks for what the filter says, and goes on behind what was read', () => {
    expect(addressOfPage(all)).toBe('/admin/blogs?envelope=true&limit=20');
    expect(addressOfPage({ search: 'a b', status: 'draft' }, 'next')).toBe(
      '/admin/blogs?q=a+b&status=draft&envelope=true&limit=20&cursor=next',
    );
  });
});

describe('describeCount', () => {
  it.each<[string, number, Partial<PostListFilter>]>([
    ['There are no posts yet.', 0, {}],
    ['There are no published posts.', 0, { status: 'published' }],
    ['There are no drafts.', 0, { status: 'draft' }],
    ['Nothing was found.', 0, { search: 'x', status: 'draft' }],
    ['1 post.', 1, {}],
    ['2 drafts found.', 2, { search: 'x', status: 'draft' }],
  ])('says %j of %d', (sentence, count, filter) => {
    expect(describeCount(listed(count), { ...all, ...filter })).toBe(sentence);
  });

  it('says that there are more', () => {
    expect(describeCount(listed(20, 'next'), all)).toBe('The first 20 posts.');
  });
});
