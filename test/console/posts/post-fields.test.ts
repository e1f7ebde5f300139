import { describe, expect, it } from 'vitest';
import { fieldsOf, toPostPatch } from '../../../console/posts/post-fields.ts';
import type { Post } from '../../../shared/contract.ts';

const post: Post = {
  ...{ id: 'a', title: 'Title', content: ' text\n', author: 'ann', tags: ['a,b', 'c'], slug: 'title' },
  ...{ status: 'draft', publishedAt: null, createdAt: '', updatedAt: '', version: 1 },
};
const fields = fieldsOf(post);

describe('toPostPatch', () => {
  it('has what was changed, and leaves what the form cannot hold', () => {
    expect(toPostPatch(fields, post, 'draft')).toEqual({});
    expect(toPostPatch({ ...fields, content: 'x ' }, post, 'published')).toEqual({
      content: 'x ',
      status: 'published',
    });
    expect(toPostPatch({ ...fields, tags: ' x, ,y,' }, post, 'draft')).toEqual({ tags: ['x', 'y'] });
    expect(toPostPatch({ ...fields, title: ' ', slug: '' }, post, 'draft')).toEqual({
      title: null,
      slug: null,
    });
  });
});
