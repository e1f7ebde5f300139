import type { Post } from '../../shared/contracts/contract.js';

/** A published post without a title, with these differences. */
export const postOf = (differences: Partial<Post> = {}): Post => ({
  id: '01890000-0000-7000-8000-000000000001',
  title: null,
  content: 'a <b>',
  author: 'Ann',
  tags: [],
  slug: 'a',
  status: 'published',
  publishedAt: '2026-11-01T00:00:00.000Z',
  createdAt: '2026-11-01T00:00:00.000Z',
  updatedAt: '2026-11-01T00:00:00.000Z',
  version: 1,
  ...differences,
});
