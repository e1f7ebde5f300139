import { describe, expect, it } from 'vitest';
import { excerptOfMarkdown } from '../../../../api/blog/rendering/markdown-excerpt.js';
import { growth } from '../../../support/growth.js';

describe('excerptOfMarkdown', () => {
  it.each([
    ['Hello *world*, [a link](https://a.example) and `code`.', 'Hello world, a link and code.'],
    ['# A title\n\nText', 'Text'],
    ['# Another\n\nText', 'Another Text'],
    ['- one\n- two\n\n> three\nfour', 'one two three four'],
    ['| a | b |\n|---|---|\n| c | d |\n\nText', 'Text'],
    ['```\ncode\n```\n\n<div>html</div>\n\n![an image](https://a.example/b.png)', ''],
    ['1 < 2 & <b>bold</b> &amp; more', '1 < 2 & bold & more'],
    ['<script>alert(1)</script>', ''],
    ['', ''],
  ])('of %j is %j', (markdown, excerpt) => {
    expect(excerptOfMarkdown(markdown, ' A title ')).toBe(excerpt);
  });

  it('ends behind a whole word, with an ellipsis when there is more', () => {
    const excerpt = excerptOfMarkdown('word '.repeat(100), null);
    expect(excerpt).toMatch(/^(word )+word…$/);
    expect(excerpt.length).toBeLessThanOrEqual(241);
    expect(excerptOfMarkdown('x'.repeat(500), null)).toBe(`${'x'.repeat(240)}…`);
    expect(excerptOfMarkdown('🎉'.repeat(500), null)).toBe(`${'🎉'.repeat(240)}…`);
  });

  it('says that there is more when all that it looks at is short', () => {
    expect(excerptOfMarkdown(`a ${'![](https://a.example/b.png) '.repeat(200)} b`, null)).toBe('a…');
  });

  it.each(['[', '*a ', '<', '`', '![[', '> ', '- ', '&', '\\', '_a_ ', '[a](', '|a|\n'])(
    'sixteen times as many of %j -> about the same time, because only the beginning is read',
    async (part) => {
      const read = (count: number) => {
        const markdown = part.repeat(count);
        return () => excerptOfMarkdown(markdown, null);
      };
      expect(await growth(read, { upTo: 90_000 })).toBeLessThan(4);
    },
  );
});
