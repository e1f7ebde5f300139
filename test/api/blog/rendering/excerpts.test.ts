import { afterAll, describe, expect, it, vi } from 'vitest';
import { createExcerpts } from '../../../../api/blog/rendering/excerpts.js';
import { growth } from '../../../support/growth.js';
import { patience } from '../../../support/patience.js';
import { unhurriedRenderer } from '../../../support/renderers.js';

const renderer = unhurriedRenderer();
afterAll(() => renderer.close());
const excerptOf = async (markdown: string, title: string | null = null) =>
  (await renderer.excerpts([{ markdown, title }]))?.[0] ?? 'no time';

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
    expect(excerpt.length).toBeLessThanOrEqual(241);
    expect(await excerptOf('x'.repeat(500))).toBe(`${'x'.repeat(240)}…`);
    expect(await excerptOf('🎉'.repeat(500))).toBe(`${'🎉'.repeat(240)}…`);
  });

  it('says that there is more when all that it looks at is short', async () => {
    expect(await excerptOf(`a ${'![](https://a.example/b.png) '.repeat(200)} b`)).toBe('a…');
  });

  it.each(['[', '*a ', '<', '`', '![[', '> ', '- ', '&', '\\', '_a_ ', '[a](', '|a|\n'])(
    'sixteen times as many of %j -> about the same time, because only the beginning is read',
    async (part) => {
      const read = (count: number) => {
        const markdown = part.repeat(count).slice(0, 1001);
        return () => excerptOf(markdown);
      };
      expect(await growth(read, { upTo: 90_000 })).toBeLessThan(4);
    },
  );
});

/** Posts whose texts have these numbers. */
const postsOf = (...numbers: number[]) =>
  numbers.map((number) => ({
    id: `${number}`,
    version: 1,
    updatedAt: '2026-11-01T00:00:00.000Z',
    title: null,
    beginning: `text ${number}`,
  }));
const textsOf = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, place) => `text ${from + place}`);

type Answer = PromiseWithResolvers<readonly string[] | undefined> & { texts: string[] };

/** A renderer that answers when the test does, and what it was asked for. */
function createRenderer() {
  const asked: string[][] = [];
  const waiting: Answer[] = [];
  const next = async (): Promise<Answer> => {
    await vi.waitFor(() => expect(waiting).toHaveLength(1), patience);
    return waiting.pop() as Answer;
  };
  return {
    asked,
    next,
    /** Answers the next request with its texts. */
    async answer(): Promise<void> {
      const { texts, resolve } = await next();
      resolve(texts);
    },
    excerpts: (sent: readonly { markdown: string }[]) => {
      const texts = sent.map(({ markdown }) => markdown);
      asked.push(texts);
      const answer = Promise.withResolvers<readonly string[] | undefined>();
      waiting.push({ ...answer, texts });
      return answer.promise;
    },
  };
}

/** In milliseconds: the longest that a timer can have. */
const patient = 2_147_483_647;

describe('createExcerpts', () => {
  it('a version of a post -> its excerpt is made once, and another for the next version', async () => {
    const made = createRenderer();
    const find = createExcerpts(made, patient);
    const [first] = [find(postsOf(1)), find(postsOf(1))];
    await made.answer();
    expect(await first).toEqual(['text 1']);
    expect(await find(postsOf(1))).toEqual(['text 1']);
    const changed = postsOf(1).map((post) => ({ ...post, version: 2, beginning: 'changed' }));
    const next = find(changed);
    await made.answer();
    expect(await next).toEqual(['changed']);
    expect(made.asked).toEqual([['text 1'], ['changed']]);
  });

  it('pages of many posts -> a few at a time for all of them together', async () => {
    const made = createRenderer();
    const find = createExcerpts(made, patient);
    const numbers = Array.from({ length: 25 }, (_, place) => place + 1);
    const pages = [find(postsOf(...numbers)), find(postsOf(26))];
    for (let n = 0; n < 4; n += 1) await made.answer();
    expect(await Promise.all(pages)).toEqual([textsOf(1, 25), ['text 26']]);
    expect(made.asked.map(({ length }) => length)).toEqual([10, 1, 10, 5]);
  });

  it('a renderer that has no time -> the page has what is known, and the next one asks again', async () => {
    const made = createRenderer();
    const find = createExcerpts(made, patient);
    const known = find(postsOf(1));
    await made.answer();
    await known;
    const page = find(postsOf(1, 2));
    (await made.next()).resolve(undefined);
    expect(await page).toEqual(['text 1', undefined]);
    const next = find(postsOf(1, 2));
    await made.answer();
    expect(await next).toEqual(['text 1', 'text 2']);
  });

  it('a renderer that does not answer in time -> the page has what is known, and asks for no more', async () => {
    const made = createRenderer();
    const find = createExcerpts(made, 0);
    const numbers = Array.from({ length: 11 }, (_, place) => place + 1);
    expect(await find(postsOf(...numbers))).toEqual(numbers.map(() => undefined));
    await made.answer();
    expect(await find(postsOf(1))).toEqual(['text 1']);
    expect(made.asked).toHaveLength(1);
  });

  it('a renderer that fails -> so does the page, and the next one asks again', async () => {
    const made = createRenderer();
    const find = createExcerpts(made, patient);
    const page = find(postsOf(1));
    (await made.next()).reject(new Error('the thread is gone'));
    await expect(page).rejects.toThrow('the thread is gone');
    const next = find(postsOf(1));
    await made.answer();
    expect(await next).toEqual(['text 1']);
  });

  it('a long text -> only its beginning goes to the renderer', async () => {
    const made = createRenderer();
    const page = createExcerpts(
      made,
      patient,
    )(postsOf(1).map((post) => ({ ...post, beginning: 'x'.repeat(262_144) })));
    await made.answer();
    expect((await page)[0]).toHaveLength(1001);
  });
});
