import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { hidingFields } from '../../../cli/posts/hidden-posts.js';

it('every field that hides a post -> has a page of its program, but for two, and stands in docs/blog.md', () => {
  const page = readFileSync('docs/blog.md', 'utf8').toLowerCase().replaceAll(/[_-]/g, '');
  expect(hidingFields.filter(({ name }) => !page.includes(`\`${name}\``))).toEqual([]);
  const sourceless = hidingFields.filter(({ source }) => !source?.startsWith('https://'));
  expect(sourceless.map(({ name }) => name)).toEqual(['isdraft', 'public']);
  expect(new Set(hidingFields.map(({ name }) => name)).size).toBe(hidingFields.length);
});
