import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { slugAsGiven, slugOfTitle } from '../../../db/posts/slug.js';

const id = '019aa1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b';

describe('slugOfTitle', () => {
  it.each([
    ['Hello, world!', 'hello-world'],
    ['Größe & Maß', 'groesse-and-mass'],
    ['JavaScript at 100 %', 'javascript-at-100'],
    ['Привет, мир', 'privet-mir'],
    ["Conway's law -- again", 'conways-law-again'],
    ['  ../../etc/passwd\r\n', 'etc-passwd'],
    // Cut behind a whole word, unless the first one is too long.
    [`${'seventy '.repeat(9)}letters or more`, `${'seventy-'.repeat(9)}letters`],
    [`${'a'.repeat(39)} ${'b'.repeat(40)} c`, `${'a'.repeat(39)}-${'b'.repeat(40)}`],
    ['x'.repeat(300), 'x'.repeat(80)],
  ])('of %j is %s, with the last eight digits of the id when another post has it', (title, slug) => {
    expect(slugOfTitle(title, id)).toEqual({ wanted: slug, fallback: `${slug}-2e3f4a5b` });
  });

  it.each([[null], [''], [' '], ['---'], ['日本語'], ['‮']])('of %j is made from the id alone', (title) => {
    expect(slugOfTitle(title, id)).toEqual(slugAsGiven('post-2e3f4a5b'));
  });

  it('always gives what may be given as a slug, too', () => {
    const title = fc.string({ unit: 'binary', maxLength: 300 });
    fc.assert(
      fc.property(title, (text) => {
        for (const slug of Object.values(slugOfTitle(text, id))) {
          expect(slug).toMatch(/^[a-z0-9]+(-[a-z0-9]+)*$/);
          expect(slug.length).toBeLessThanOrEqual(100);
        }
      }),
    );
  });
});
