import { describe, expect, it } from 'vitest';
import { Sitemap } from '../../../api/site/front-page.js';
import type { MappedPost, PostMap } from '../../../db/posts/post-lists.js';
import { Failure } from '../../../shared/failures.js';

const updatedAt = new Date('2026-11-01T00:00:00.000Z');
const ids = ['01890000-0000-7000-8000-000000000001', '01890000-0000-7000-8000-000000000002'];

/** A map of two parts, one when a post was withdrawn, and how often it was read. */
function createMap(): PostMap & { reads: string[]; away: string; isWithdrawn: boolean } {
  const map = {
    reads: [] as string[],
    away: '',
    isWithdrawn: false,
    state: async () => {
      map.reads.push('state');
      if (map.away === 'state') throw new Failure('database_unavailable');
      return map.isWithdrawn ? { parts: 1, version: 'later' } : { parts: 2, version: 'first' };
    },
    part: async (number: number): Promise<MappedPost[]> => {
      map.reads.push(`${number}`);
      if (map.away === 'part') throw new Failure('database_unavailable');
      const first = [{ id: ids[0] ?? '', slug: 'a-post', updatedAt }];
      const second = [{ id: ids[1] ?? '', slug: ids[0] ?? '', updatedAt }];
      return (map.isWithdrawn ? [second] : [first, second])[number - 1] ?? [];
    },
  };
  return map;
}

const baseUrl = "https://blog.example/it's&more";
const escaped = 'https://blog.example/it&#39;s&amp;more';
const text = (document: { body: Buffer } | undefined) => document?.body.toString();

describe('Sitemap', () => {
  it('is an index of numbered parts', async () => {
    const sitemap = new Sitemap({ posts: createMap(), baseUrl });
    expect(text(await sitemap.find())).toBe(`<?xml version="1.0" encoding="UTF-8"?>
<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
<sitemap><loc>${escaped}/sitemap.xml?part=1</loc></sitemap>
<sitemap><loc>${escaped}/sitemap.xml?part=2</loc></sitemap>
</sitemapindex>
`);
  });

  it('lists posts by their slugs, but where one looks like the id of another post', async () => {
    const sitemap = new Sitemap({ posts: createMap(), baseUrl });
    expect(text(await sitemap.find(1))).toBe(`<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
<url><loc>${escaped}/blogs/a-post</loc><lastmod>2026-11-01T00:00:00.000Z</lastmod></url>
</urlset>
`);
    expect(text(await sitemap.find(2))).toContain(`<loc>${escaped}/blogs/${ids[1]}</loc>`);
  });

  it('has no part after the last', async () => {
    const map = createMap();
    expect(await new Sitemap({ posts: map, baseUrl }).find(3)).toBeUndefined();
    expect(map.reads).toEqual(['state']);
  });

  it('has an empty first part where there are no posts', async () => {
    const none: PostMap = { state: async () => ({ parts: 1, version: '' }), part: async () => [] };
    expect(text(await new Sitemap({ posts: none, baseUrl }).find(1))).toMatch(/<urlset[^>]*>\n<\/urlset>\n$/);
  });

  it('asks for the state of the posts once for all who ask meanwhile', async () => {
    const map = createMap();
    const sitemap = new Sitemap({ posts: map, baseUrl });
    await Promise.all([sitemap.find(), sitemap.find(), sitemap.find(1), sitemap.find(1)]);
    expect(map.reads).toEqual(['state', '1']);
  });

  it('reads and writes a part once while the posts stay the same', async () => {
    const map = createMap();
    const sitemap = new Sitemap({ posts: map, baseUrl });
    const first = [await sitemap.find(), await sitemap.find(1), await sitemap.find(2)];
    for (const [part, document] of first.entries()) expect(await sitemap.find(part)).toBe(document);
    expect(map.reads.filter((read) => read !== 'state')).toEqual(['1', '2']);
  });

  it('reads again when a post was withdrawn, which is gone at once', async () => {
    const map = createMap();
    const sitemap = new Sitemap({ posts: map, baseUrl });
    expect(text(await sitemap.find(1))).toContain('a-post');
    expect(text(await sitemap.find())).toContain('?part=2');
    map.isWithdrawn = true;
    expect(text(await sitemap.find(1))).not.toContain('a-post');
    expect(text(await sitemap.find(1))).toContain(`${ids[1]}`);
    expect(text(await sitemap.find())).not.toContain('?part=2');
    expect(await sitemap.find(2)).toBeUndefined();
  });

  it.each(['state', 'part'])(
    'cannot read the %s -> fails, and the next request reads again',
    async (name) => {
      const map = createMap();
      const sitemap = new Sitemap({ posts: map, baseUrl });
      map.away = name;
      await expect(sitemap.find(1)).rejects.toMatchObject({ code: 'database_unavailable' });
      map.away = '';
      expect(text(await sitemap.find(1))).toContain('a-post');
    },
  );
});
