import { describe, expect, it } from 'vitest';
import { blogOf } from '../../../api/blog/blog-layout.js';

const blogIn = (language: string) =>
  blogOf({ BLOG_TITLE: 'A', BLOG_BASE_URL: 'https://blog.example/base//', BLOG_LANGUAGE: language });

describe('blogOf', () => {
  it('has the base address without its slashes, and its path', () => {
    expect(blogIn('en')).toMatchObject({ baseUrl: 'https://blog.example/base', basePath: '/base' });
    const atRoot = { BLOG_TITLE: 'A', BLOG_BASE_URL: 'https://blog.example/', BLOG_LANGUAGE: 'en' };
    expect(blogOf(atRoot)).toMatchObject({ baseUrl: 'https://blog.example', basePath: '' });
  });

  it.each([
    ['en', 'November 3, 2026'],
    ['de', '3. November 2026'],
    ['pt-BR', '3 de novembro de 2026'],
    ['ja', '2026年11月3日'],
  ])('writes days in UTC in the language %s', (language, day) => {
    expect(blogIn(language).formatDay('2026-11-03T23:59:59.999Z')).toBe(day);
  });
});
