import fc from 'fast-check';
import type { Header } from './client.js';
import { headerText, numberedPosts, one, type Twist } from './plan.js';
import { canary } from './texts.js';

const number = fc.nat(numberedPosts - 1);
const suffixed = number.map((n) => `«etag ${n}»`);

/** Tags of If-Match that can be read: the current one, a stale one, lists of any, or any at all. */
export const ifMatch = (n: number): fc.Arbitrary<Header[]> =>
  fc.oneof(
    { weight: 6, arbitrary: fc.constant<Header[]>([]) },
    {
      weight: 4,
      arbitrary: one('If-Match', fc.constantFrom(`«etag ${n}»`, '*', ` * `, `"a" , , «etag ${n}»,`)),
    },
    {
      weight: 1,
      arbitrary: one(
        'If-Match',
        fc.constantFrom('"1-0"', '"0-0"', '"999999999-zzzzzzzzz"', '""', `W/«etag ${n}»`),
      ),
    },
    { weight: 1, arbitrary: one('If-Match', suffixed) },
    {
      weight: 1,
      arbitrary: fc.constant<Header[]>([
        ['If-Match', '"x"'],
        ['If-Match', `«etag ${n}»`],
      ]),
    },
    {
      weight: 1,
      arbitrary: one('If-Match', fc.constantFrom(Array.from({ length: 900 }, (_, i) => `"${i}-k"`).join())),
    },
  );

/** Tags of If-None-Match, half of them good for a 304. */
export const ifNoneMatch = (current: string): fc.Arbitrary<Header[]> =>
  fc.oneof(
    { weight: 4, arbitrary: fc.constant<Header[]>([]) },
    {
      weight: 4,
      arbitrary: one('If-None-Match', fc.constantFrom(current, `W/${current}`, '*', `"a", ${current}`)),
    },
    {
      weight: 2,
      arbitrary: one('If-None-Match', fc.constantFrom('', '"', 'W/', '"a" "b"', ',,,', 'x', '"1-0"', '**')),
    },
    { weight: 1, arbitrary: one('If-None-Match', headerText) },
    { weight: 1, arbitrary: one('If-None-Match', canary) },
  );

/** If-Match that cannot be read. */
export const oddIfMatch: fc.Arbitrary<Twist> = one(
  'If-Match',
  fc.oneof(fc.constantFrom('', ',', 'x', '"', '"a" "b"', '*, "a"', 'w/"a"', '"a b"', "'a'"), canary),
).map((own) => ({ odd: 'headers', own }));
