import fc from 'fast-check';
import { oddId, strangeQuery } from './addresses.js';
import type { Header } from './client.js';
import * as conditions from './conditions.js';
import * as credentials from './credentials.js';
import * as headers from './headers.js';
import { numberedPosts, type Plan, type PlannedBody } from './plan.js';
import { requestsOf } from './requests.js';
import { canary, text, unstorable } from './texts.js';

/** Readers with no credentials, and with each kind that there is. */
const readers: fc.Arbitrary<Header[]> = fc.oneof(
  fc.constant<Header[]>([]),
  credentials.writer,
  fc.constantFrom('«reader»', '«chatter»').map((token): Header[] => [['Authorization', `Bearer ${token}`]]),
);

/** A body with a request that has no use for one. */
const uselessBody = fc.option(
  fc.constantFrom<PlannedBody>({ text: '{', bytes: 'utf8' }, { text: 'x'.repeat(5000), bytes: 'utf8' }),
  {
    nil: undefined,
    freq: 9,
  },
);

const wrongReader = credentials.wrongCredentials.filter(({ credentials = [] }) => credentials.length > 0);

const encoded = (value: string) => encodeURIComponent(value.toWellFormed());

const parameter: fc.Arbitrary<string> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.oneof(
      fc.constantFrom(1, 2, 99, 200).map((limit) => `limit=${limit}`),
      text.map((q) => `q=${encoded(Array.from(q).slice(0, 500).join(''))}`),
      fc.constantFrom(
        'q=',
        'q=+',
        'q="a+b"+or+-c',
        'q=((',
        'q=%27%3A*%26|!',
        'q=or',
        'q=-',
        'q="',
        `q=${'a+'.repeat(249)}`,
      ),
      text.map((tag) => `tag=x${encoded(Array.from(tag).slice(0, 49).join(''))}`),
      text.map((author) => `author=${encoded(Array.from(`x${author}`).slice(0, 200).join(''))}`),
      fc.constantFrom('envelope=true', 'envelope=false'),
      fc.constantFrom('status=published', 'status=draft'),
      fc.constantFrom('cursor=«cursor»', 'cursor=«cursor back»'),
    ),
  },
  {
    weight: 2,
    arbitrary: fc.oneof(
      fc
        .constantFrom(
          '0',
          '-1',
          '201',
          '1.5',
          '1e2',
          '',
          'all',
          '99999999999999999999',
          '0x10',
          ' 1',
          '%D9%A3',
        )
        .map((limit) => `limit=${limit}`),
      fc.constantFrom('1', 'yes', 'TRUE', '', 'null').map((envelope) => `envelope=${envelope}`),
      fc.constantFrom('Draft', 'drafts', '', 'null', 'draft%20').map((status) => `status=${status}`),
      fc
        .oneof(canary, fc.base64String(), fc.constantFrom('', 'bm9wZQ', '%00', 'LTE.', 'bmV3ZXIu'))
        .map((cursor) => `cursor=${cursor}`),
      fc
        .tuple(
          fc.constantFrom('tag', 'author', 'q', 'cursor', 'status'),
          fc.oneof(unstorable.map(encoded), fc.constantFrom('%00', '%', '%ED%A0%80', '%ff', '\xe9')),
        )
        .map(([name, value]) => `${name}=${value}`),
      fc.constantFrom('tag', 'author', 'q').map((name) => `${name}=${'x'.repeat(501)}`),
    ),
  },
  {
    weight: 2,
    arbitrary: fc.oneof(
      canary.map((mark) => `${mark}=${mark}`),
      canary.map((mark) => `tag[${mark}]=${mark}`),
      fc.constantFrom(
        'limit[]=5',
        'a[b]=',
        '__proto__=x',
        '__proto__[limit]=5',
        'constructor=x',
        '=',
        '%',
        '%6cimit=7',
        'LIMIT=x',
        'limit',
      ),
    ),
  },
);

const reading = { credentials: readers, wrong: wrongReader, body: uselessBody };

/** `GET /blogs`. */
export const listPosts: fc.Arbitrary<Plan> = requestsOf({
  ...{ ...reading, at: '/blogs', odd: [] },
  query: fc.oneof(
    { weight: 1, arbitrary: strangeQuery },
    {
      weight: 6,
      arbitrary: fc.array(parameter, { minLength: 1, maxLength: 4 }).map((some) => some.join('&')),
    },
  ),
});

/** `GET /blogs/{id}`. */
export const getPost: fc.Arbitrary<Plan> = requestsOf({
  ...reading,
  at: fc.tuple(fc.nat(numberedPosts - 1), fc.constantFrom('', '', 'U')).chain(([n, spelling]) =>
    fc.record({
      path: fc.constant(`/blogs/«id${spelling} ${n}»`),
      own: fc.tuple(headers.accept, conditions.ifNoneMatch(`«etag ${n}»`)).map((some) => some.flat()),
    }),
  ),
  ...{ near: '/blogs/«id 1»', odd: [oddId('/blogs'), oddId('/blogs')] },
});

const feed = (at: '/feed.json' | '/feed.xml'): fc.Arbitrary<Plan> =>
  requestsOf({
    ...{ ...reading, at, odd: [] },
    own: fc.tuple(headers.accept, conditions.ifNoneMatch(`«tag ${at}»`)).map((some) => some.flat()),
  });

/** `GET /feed.json`. */
export const jsonFeed = feed('/feed.json');

/** `GET /feed.xml`. */
export const atomFeed = feed('/feed.xml');
