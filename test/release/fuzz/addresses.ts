import fc from 'fast-check';
import { numberedPosts, type Twist } from './plan.js';
import { canary } from './texts.js';

/** Addresses of no operation, or that an operation has by chance: what they give is only known not to be a failure. */
export const oddAddress = (path: string): fc.Arbitrary<Twist> =>
  fc
    .oneof(
      fc.constantFrom(
        `${path}/`,
        `/${path}`,
        `${path}//`,
        path.toUpperCase(),
        `${path}%2f`,
        `${path}%00`,
        `${path};x=y`,
        `${path}/../${path}`,
        `/.${path}`,
        `/..${path}`,
        `/%2e%2e${path}`,
        `http://evil.example${path}`,
        `//evil.example${path}`,
        `${path}#x`,
        `/v1${path}`,
        `/docs/..${path}`,
      ),
      fc.constantFrom(
        '/',
        '*',
        '/%',
        '/%E0%A4%A',
        '/\xff',
        '/__proto__',
        '/blogs/a/b',
        '/feed.json/',
        '/feed',
        '/docs/%2e%2e/x',
      ),
      fc.constantFrom(
        `${path} x`,
        `${path}\u0001`,
        '',
        `/${'a'.repeat(10_000)}`,
        `/${'%61'.repeat(3000)}`,
        `/${'a/'.repeat(3000)}`,
      ),
      canary.map((mark) => `${path}/${mark}/${mark}`),
      canary.map((mark) => `/${mark}`),
    )
    .map((odd) => ({ odd: 'address', path: odd }));

/** Unknown ids, in one segment of a path; all of them have to be 404, or 400 if they cannot be decoded. */
export const oddId = (path: string): fc.Arbitrary<Twist> =>
  odd.map((id) => ({ odd: 'id', path: `${path}/${id}` }));

const odd: fc.Arbitrary<string> = fc.oneof(
  fc.nat(numberedPosts - 1).map((n) => `«gone ${n}»`),
  fc.uuid(),
  fc.uuid().map((id) => `${id}0`),
  fc.uuid().map((id) => `{${id}}`),
  fc.uuid().map((id) => id.replaceAll('-', '')),
  fc.uuid().map((id) => `${id}%00`),
  fc.uuid().map((id) => `%20${id}`),
  fc.uuid().map((id) => `${id}%0a`),
  fc.constantFrom(
    '%00',
    '%',
    '%zz',
    '%E0%A4%A',
    '%ff',
    '%ED%A0%80',
    '%2e%2e',
    '..%2f..',
    '..%5c',
    '0',
    '-1',
    '1e9',
    'NaN',
    'null',
  ),
  fc.constantFrom(
    '__proto__',
    'constructor',
    'a'.repeat(10_000),
    '%61'.repeat(3000),
    '%F0%9F%8E%89',
    "'%20OR%201=1--",
    ':id',
    '*',
    '.',
    '~',
    '\xe9',
  ),
  canary,
  fc.webSegment().filter((segment) => segment !== '' && segment !== '..' && segment !== '.'),
);

/** Queries that mean nothing to an operation without parameters. */
export const strangeQuery: fc.Arbitrary<string | undefined> = fc.oneof(
  { weight: 4, arbitrary: fc.constant(undefined) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      '',
      '?',
      '%',
      'a[b]=c',
      '__proto__[x]=1',
      'access_token=x',
      '&&&',
      `x=${'y'.repeat(5000)}`,
    ),
  },
  { weight: 1, arbitrary: fc.webQueryParameters() },
  { weight: 1, arbitrary: canary.map((mark) => `${mark}=${mark}`) },
);
