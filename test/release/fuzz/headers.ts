import fc from 'fast-check';
import type { Header } from './client.js';
import { headerText, one, type Twist } from './plan.js';
import { canary } from './texts.js';

/** Methods that no address of the API has; CONNECT asks for a tunnel, and Node closes the connection. */
export const oddMethod: fc.Arbitrary<Twist> = fc
  .constantFrom('OPTIONS', 'TRACE', 'PROPFIND', 'LOCK', 'QUERY', 'PURGE', 'SOURCE', 'post', 'GETT', 'X')
  .map((method) => ({ odd: 'method', method }));

const charsets = ['', ';charset=utf-8', '; charset=UTF-8', '; charset="utf-8"', ' ; charset = utf8 '];

/** How JSON may be announced. */
export const jsonType = (mediaType = 'application/json'): fc.Arbitrary<Header[]> =>
  one(
    'Content-Type',
    fc.constantFrom(...charsets).map((charset) => `${mediaType}${charset}`),
  );

/** Media types of which none is JSON in UTF-8. */
export const oddMediaType: fc.Arbitrary<Twist> = fc
  .oneof(
    fc.constant<Header[]>([]),
    one(
      'Content-Type',
      fc.constantFrom('', '/', 'json', 'text/plain', 'text/json', 'application/xml', 'APPLICATION/JSON5'),
    ),
    one(
      'Content-Type',
      fc.constantFrom('application/json; charset=utf-16', 'application/json; charset=latin1'),
    ),
    one(
      'Content-Type',
      fc.constantFrom('application/json, application/json', 'multipart/form-data; boundary=x'),
    ),
    one('Content-Type', fc.constantFrom('application/json-patch+json', 'application/x-www-form-urlencoded')),
    one(
      'Content-Type',
      canary.map((mark) => `application/${mark}; ${mark}="${mark}`),
    ),
    one('Content-Type', headerText),
  )
  .map((contentType) => ({ odd: 'media type', contentType }));

/** Encodings that are not supported, or not the body's. */
export const oddEncoding: fc.Arbitrary<Twist> = fc
  .constantFrom('gzip', 'br', 'deflate', 'compress', 'zstd', 'gzip, gzip', '', 'x', 'identity, br')
  .map((encoding) => ({ odd: 'encoding', others: [['Content-Encoding', encoding]] }));

/** Headers without a meaning to the operations, in forms without a meaning. */
export const others: fc.Arbitrary<Header[]> = fc.oneof(
  { weight: 4, arbitrary: fc.constant<Header[]>([]) },
  {
    weight: 3,
    arbitrary: fc.constantFrom<Header[]>(
      [['Connection', 'close']],
      [['Expect', '100-continue']],
      [['Expect', 'the worst']],
      [
        ['Upgrade', 'h2c'],
        // Node answers nothing to what follows on the connection when that is no HTTP.
        ['Connection', 'Upgrade, close'],
      ],
      [['Range', 'bytes=0-0']],
      [['X-HTTP-Method-Override', 'DELETE']],
      [
        ['Host', 'evil.example:1'],
        ['X-Forwarded-Host', 'evil.example'],
      ],
      [['Host', '']],
      [
        ['If-Unmodified-Since', 'Thu, 01 Jan 1970 00:00:00 GMT'],
        ['If-Modified-Since', 'never'],
      ],
      [
        ['Accept-Encoding', 'br;q=1, *;q=0'],
        ['Accept-Charset', 'utf-7'],
        ['Accept-Language', 'x'.repeat(300)],
      ],
      [
        ['__proto__', 'x'],
        ['constructor', 'x'],
        ['toString', 'x'],
      ],
      Array.from({ length: 200 }, (_, i): Header => [`X-Many-${i}`, 'x']),
    ),
  },
  {
    weight: 2,
    arbitrary: fc
      .tuple(
        fc.constantFrom('User-Agent', 'Cookie', 'Referer', 'Origin', 'X-Request-Id', 'traceparent', 'Via'),
        canary,
      )
      .map(([name, mark]): Header[] => [[name, mark]]),
  },
  { weight: 1, arbitrary: one('X-Any', headerText) },
);

/** Headers that are more than Node reads, or bytes that no header may have. */
export const unreadableHeaders: fc.Arbitrary<Twist> = fc
  .constantFrom<Header[]>(
    [['X-Huge', 'x'.repeat(20_000)]],
    [['X-Control', 'a\u0000b']],
    [['X Space', 'x']],
    [['', 'x']],
    [['Content-Length', '-1']],
    [
      ['Transfer-Encoding', 'x'],
      ['Connection', 'close'],
    ],
  )
  .map((headers) => ({ odd: 'address', others: headers }));

const quality = fc.constantFrom(
  '',
  ';q=0',
  ';q=0.5',
  ';q=1.000',
  ';q=x',
  ';q=-1',
  '; charset=utf-8',
  ';version=1',
);
const mediaRange = fc.constantFrom(
  'application/json',
  'text/markdown',
  'text/html',
  'text/event-stream',
  'text/*',
  '*/*',
  '*',
  'a/b',
  '/',
  '',
);

/** Accept with any weights, in any order, or with nonsense. */
export const accept: fc.Arbitrary<Header[]> = fc.oneof(
  { weight: 2, arbitrary: fc.constant<Header[]>([]) },
  {
    weight: 5,
    arbitrary: one(
      'Accept',
      fc
        .array(fc.tuple(mediaRange, quality), { minLength: 1, maxLength: 5 })
        .map((ranges) => ranges.map((range) => range.join('')).join(', ')),
    ),
  },
  { weight: 1, arbitrary: one('Accept', headerText) },
);

/** Prefer in every spelling of strictness, and of none. */
export const prefer: fc.Arbitrary<Header[]> = fc.oneof(
  { weight: 8, arbitrary: fc.constant<Header[]>([]) },
  {
    weight: 3,
    arbitrary: one(
      'Prefer',
      fc.constantFrom(
        'handling=strict',
        'Handling="strict"; x=1, wait=5',
        'wait=1,handling = strict',
        'handling=lenient',
        'handling',
        'return=minimal',
        '',
        '=;,=',
        'handling=lenient, handling=strict',
      ),
    ),
  },
);

/** Keys of idempotency, few of them, so that they meet again with another body. */
export const idempotencyKey: fc.Arbitrary<Header[]> = fc.oneof(
  { weight: 6, arbitrary: fc.constant<Header[]>([]) },
  {
    weight: 1,
    arbitrary: one(
      'Idempotency-Key',
      fc.nat(5).map((n) => `key-${n}`),
    ),
  },
  {
    weight: 1,
    arbitrary: one('Idempotency-Key', fc.constantFrom('~'.repeat(255), '"quoted"', '!', '__proto__')),
  },
);

/** Keys that are too long, or have other characters than those that can be seen. */
export const oddIdempotencyKey: fc.Arbitrary<Twist> = fc
  .oneof(
    one('Idempotency-Key', fc.constantFrom('', 'a b', 'x'.repeat(256), 'é', '\xa0')),
    canary.map((mark): Header[] => [
      ['Idempotency-Key', mark],
      ['Idempotency-Key', mark],
    ]),
  )
  .map((own) => ({ odd: 'headers', own }));
