import { afterEach, describe, expect, it, vi } from 'vitest';
import { createBlog } from '../../../api/blog/blog-layout.js';

afterEach(() => vi.restoreAllMocks());

const blogIn = (language: string) =>
  createBlog({ title: 'A', baseUrl: 'https://blog.example/base//', language });

describe('createBlog', () => {
  it('has the base address without its slashes, and its path', () => {
    expect(blogIn('en')).toMatchObject({ baseUrl: 'https://blog.example/base', basePath: '/base' });
    const atRoot = createBlog({ title: 'A', baseUrl: 'https://blog.example/', language: 'en' });
    expect(atRoot).toMatchObject({ baseUrl: 'https://blog.example', basePath: '' });
  });

  it.each([
    ['en', 'November 3, 2026'],
    ['de', '3. November 2026'],
    ['pt-BR', '3 de novembro de 2026'],
    ['ja', '2026年11月3日'],
  ])('writes days in UTC in the language %s', (language, day) => {
    expect(blogIn(language).formatDay('2026-11-03T23:59:59.999Z')).toBe(day);
  });

  it('makes what writes them once: an index page has twenty', () => {
    const { formatDay } = blogIn('en');
    const made = vi.spyOn(Intl, 'DateTimeFormat');
    formatDay('2026-11-03T00:00:00.000Z');
    expect(made).not.toHaveBeenCalled();
  });
});
