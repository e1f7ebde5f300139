import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { slugAsGiven, slugOfTitle } from '../../../db/posts/post-creation.js';
import { slug as rule } from '../../../db/posts/post-rules.js';

const id = '019aa1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b';

describe('slugOfTitle', () => {
  it.each([
    ['Hello, world!', 'hello-world'],
    ['Größe & Maß', 'groesse-and-mass'],
    ['Größe & Maß, Ångström, Чай'.normalize('NFD'), 'groesse-and-mass-angstroem-chay'],
    ['JavaScript at 100 %', 'javascript-at-100'],
    ['Привет, мир', 'privet-mir'],
    ["Conway's law -- again", 'conways-law-again'],
    ['  ../../etc/passwd\r\n', 'etc-passwd'],
    // Cut behind a whole word, unless the first one is too long.
    [`${'seventy '.repeat(9)}letters or more`, `${'seventy-'.repeat(9)}letters`],
    [`${'a'.repeat(39)} ${'b'.repeat(40)} c`, `${'a'.repeat(39)}-${'b'.repeat(40)}`],
    ['x'.repeat(300), 'x'.repeat(80)],
    // Letters without a usual way to write them in ASCII stay.
    ['日本語を学ぶ、今日から', '日本語を学ぶ-今日から'],
    ['データベース', 'データベース'],
    ['Node.js入門 第3版', 'node-js-入門-第-3-版'],
    ['한국어 제목'.normalize('NFD'), '한국어-제목'],
    ['ภาษาไทยน้ำ', 'ภาษาไทยน้ำ'],
    ['हिन्दी क\u094d\u200dष भाषा १', 'हिन्दी-क्ष-भाषा-१'],
    ['שלום, עולם!', 'שלום-עולם'],
    ['বাংলা தமிழ் አማርኛ', 'বাংলা-தமிழ்-አማርኛ'],
    ['字'.repeat(100), '字'.repeat(63)],
    ['𠮷'.repeat(100), '𠮷'.repeat(40)],
    [`${'字'.repeat(62)}नि`, '字'.repeat(62)],
  ])('of %j is %s, with the last eight digits of the id when another post has it', (title, slug) => {
    expect(slugOfTitle(title, id)).toEqual({ wanted: slug, fallback: `${slug}-2e3f4a5b` });
  });

  it.each([[null], [''], [' '], ['---'], ['、。'], ['\u0e31\u0e34'], ['\u202e']])(
    'of %j is made from the id alone',
    (title) => {
      expect(slugOfTitle(title, id)).toEqual(slugAsGiven('post-2e3f4a5b'));
    },
  );

  it('always gives what may be given as a slug, too', () => {
    const title = fc.string({ unit: 'binary', maxLength: 300 });
    fc.assert(
      fc.property(title, (text) => {
        for (const slug of Object.values(slugOfTitle(text, id))) {
          expect(rule.safeParse(slug).error, slug).toBeUndefined();
        }
      }),
    );
  });
});
