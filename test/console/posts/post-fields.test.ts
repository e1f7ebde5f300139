import { describe, expect, it } from 'vitest';
import { fieldsOf, isSame, toPostInput, toPostPatch } from '../../../console/posts/post-fields.ts';
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

describe('toPostInput', () => {
  it('leaves to the server what is empty', () => {
    expect(toPostInput({ title: '', content: 'x', tags: '', slug: '' }, 'published')).toEqual({
      ...{ title: null, content: 'x', tags: [], slug: null, status: 'published' },
    });
  });
});

describe('isSame', () => {
  it('sees every field', () => {
    expect(isSame(fields, { ...fields })).toBe(true);
    for (const name of ['title', 'content', 'tags', 'slug'] as const)
      expect(isSame(fields, { ...fields, [name]: 'x' })).toBe(false);
    expect(fieldsOf({ ...post, title: null }).title).toBe('');
  });
});
