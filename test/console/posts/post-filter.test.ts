import { describe, expect, it } from 'vitest';
import { fragmentOf, type PostListFilter, readFilter } from '../../../console/posts/post-list.tsx';

const all: PostListFilter = { search: '', status: '' };

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
