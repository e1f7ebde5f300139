import { afterAll, describe, expect, it } from 'vitest';
import { createExcerpts } from '../../../../api/blog/rendering/excerpts.js';
import { unhurriedRenderer } from '../../../support/renderers.js';

const renderer = unhurriedRenderer();
afterAll(() => renderer.close());
const excerptOf = (markdown: string, title: string | null = null) => renderer.excerpt({ markdown, title });

describe('an excerpt', () => {
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
  ])('of %j is %j', async (markdown, excerpt) => {
    expect(await excerptOf(markdown, ' A title ')).toBe(excerpt);
  });

  it('ends behind a whole word, with an ellipsis when there is more', async () => {
    const excerpt = await excerptOf('word '.repeat(100));
    expect(excerpt).toMatch(/^(word )+word…$/);
    expect(excerpt?.length).toBeLessThanOrEqual(241);
    expect(await excerptOf('x'.repeat(500))).toBe(`${'x'.repeat(240)}…`);
    expect(await excerptOf('🎉'.repeat(500))).toBe(`${'🎉'.repeat(240)}…`);
  });

  it('says that there is more when all that it looks at is short', async () => {
    expect(await excerptOf(`a ${'![](https://a.example/b.png) '.repeat(200)} b`)).toBe('a…');
  });

  it('parses no more than the first thousand characters, whatever comes behind them', async () => {
    const definition = '\n\n[a]: https://a.example\n';
    expect(await excerptOf(`[a] b${' '.repeat(900)}${definition}`)).toBe('a b');
    expect(await excerptOf(`[a] b${' '.repeat(1000)}${definition}`)).toBe('[a] b…');
  });
});

const postOf = (beginning: string, version = 1) => ({
  ...{ id: beginning, version, updatedAt: '2026-11-01T00:00:00.000Z', title: null },
  beginning,
});
const posts = ['a', 'b', 'c'].map((text) => postOf(text));

/** Finds excerpts with a renderer that answers so, in the longest time that a timer can have. */
function start(
  answer: (text: string) => Promise<string | undefined> = async (text) => text,
  maxWaitMs = 2_147_483_647,
) {
  const asked: string[] = [];
  const excerpt = ({ markdown }: { markdown: string }) => {
    asked.push(markdown);
    return answer(markdown);
  };
  return { asked, find: createExcerpts({ excerpt }, maxWaitMs) };
}

describe('createExcerpts', () => {
  it('a version of a post -> its excerpt is made once, and another for the next version', async () => {
    const { asked, find } = start();
    expect(await Promise.all([find([postOf('a')]), find([postOf('a')])])).toEqual([['a'], ['a']]);
    expect(await find([{ ...postOf('a', 2), beginning: 'changed' }])).toEqual(['changed']);
    expect(await find([postOf('a')])).toEqual(['a']);
    expect(asked).toEqual(['a', 'changed']);
  });

  it('a renderer that has no time -> the page has those before, and the next one asks again', async () => {
    let isBusy = true;
    const { asked, find } = start(async (text) => (isBusy && text === 'b' ? undefined : text));
    expect(await find(posts)).toEqual(['a', undefined, undefined]);
    isBusy = false;
    expect(await find(posts)).toEqual(['a', 'b', 'c']);
    expect(asked).toEqual(['a', 'b', 'b', 'c']);
  });

  it('a renderer that does not answer in time -> the page has what is known, and asks for no more', async () => {
    const made = Promise.withResolvers<string>();
    const { asked, find } = start(() => made.promise, 0);
    expect(await find(posts)).toEqual([undefined, undefined, undefined]);
    made.resolve('a');
    expect(await find([postOf('a')])).toEqual(['a']);
    expect(asked).toEqual(['a']);
  });

  it('a renderer that fails -> so does the page, and the next one asks again', async () => {
    let isGone = true;
    const { find } = start(async (text) => {
      if (isGone) throw new Error('the thread is gone');
      return text;
    });
    await expect(find(posts)).rejects.toThrow('the thread is gone');
    isGone = false;
    expect(await find(posts)).toEqual(['a', 'b', 'c']);
  });
});
