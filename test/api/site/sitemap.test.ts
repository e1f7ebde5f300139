import { describe, expect, it } from 'vitest';
import { Sitemap } from '../../../api/site/sitemap.js';
import type { MappedPost, PostMap } from '../../../db/posts/post-map.js';
import { Failure } from '../../../shared/failures.js';

const updatedAt = new Date('2026-11-01T00:00:00.000Z');
const ids = ['01890000-0000-7000-8000-000000000001', '01890000-0000-7000-8000-000000000002'];

/** A map of two parts, and how often it was read. */
function createMap(): PostMap & { reads: string[]; isAway: boolean; isWithdrawn: boolean } {
  const map = {
    reads: [] as string[],
    isAway: false,
    isWithdrawn: false,
    countParts: async () => {
      map.reads.push('count');
      if (map.isAway) throw new Failure('database_unavailable');
      return 2;
    },
    part: async (number: number): Promise<MappedPost[]> => {
      map.reads.push(`${number}`);
      if (map.isAway) throw new Failure('database_unavailable');
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
    expect(await new Sitemap({ posts: createMap(), baseUrl }).find(3)).toBeUndefined();
  });

  it('reads each document once for all who ask meanwhile', async () => {
    const map = createMap();
    const sitemap = new Sitemap({ posts: map, baseUrl });
    await Promise.all([sitemap.find(), sitemap.find(), sitemap.find(1), sitemap.find(1)]);
    expect(map.reads).toEqual(['count', '1']);
  });

  it('reads again for a later request: a post that was withdrawn is gone', async () => {
    const map = createMap();
    const sitemap = new Sitemap({ posts: map, baseUrl });
    expect(text(await sitemap.find(1))).toContain('a-post');
    map.isWithdrawn = true;
    expect(text(await sitemap.find(1))).not.toContain('a-post');
    expect(text(await sitemap.find(1))).toContain(`${ids[1]}`);
    expect(await sitemap.find(2)).toBeUndefined();
    map.isAway = true;
    for (const read of [sitemap.find(), sitemap.find(1)])
      await expect(read).rejects.toMatchObject({ code: 'database_unavailable' });
    map.isAway = false;
    expect(text(await sitemap.find(1))).toContain(`${ids[1]}`);
  });
});
