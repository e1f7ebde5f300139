import fc from 'fast-check';
import type { Header } from './client.js';
import { headerText, one, type Twist } from './plan.js';
import { canary } from './texts.js';

const basic = (credentials: string) => `Basic ${Buffer.from(credentials).toString('base64')}`;

/** The login limiter lets what comes from here wait, a second or more each, or refuses it. */
export const floodedAddress = '192.0.2.1';

/** Most failures come from addresses of their own, so that the login limiter does not hold them back. */
const forwardedFor = fc.oneof(
  { weight: 6, arbitrary: fc.ipV4() },
  { weight: 2, arbitrary: fc.ipV6() },
  {
    weight: 1,
    arbitrary: fc.constantFrom('', 'unknown', '_hidden, 10.0.0.1', '999.1.1.1', '[::1]:80', 'x'.repeat(500)),
  },
  { weight: 2, arbitrary: fc.constant(floodedAddress) },
);

const withAddress = (credentials: fc.Arbitrary<Header[]>): fc.Arbitrary<Twist> =>
  fc.tuple(credentials, forwardedFor).map(([headers, address]) => ({
    odd: 'credentials',
    credentials: [...headers, ['X-Forwarded-For', address]],
  }));

const oddAuthorization: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom(
    '',
    'Bearer',
    'Bearer ',
    'Basic',
    'Basic =',
    'Basic !!!',
    'Negotiate',
    '«writer»',
    basic('no colon'),
  ),
  canary.map((mark) => `Bearer ${mark}`),
  canary.map((mark) => `Basic ${mark}`),
  canary.map((mark) => basic(`${mark}:${mark}`)),
  canary.map((mark) => basic(`tester:${mark}\0`)),
  fc.constantFrom(`Bearer ${'A'.repeat(10_000)}`, `Basic ${'A'.repeat(10_000)}`),
  fc.constantFrom(
    'Bearer «writer» x',
    'Bearer «writer»,',
    'Bearer "«writer»"',
    'Bearer qg_',
    `Bearer qg_${'0'.repeat(38)}`,
  ),
  fc.uint8Array({ maxLength: 30 }).map((bytes) => `Basic ${Buffer.from(bytes).toString('base64')}`),
  headerText.map((any) => any.trim()),
);

/** Missing or unknown credentials. */
export const wrongCredentials: fc.Arbitrary<Twist> = fc.oneof(
  fc.constant<Twist>({ odd: 'credentials', credentials: [] }),
  withAddress(one('Authorization', oddAuthorization)),
  withAddress(
    oddAuthorization.map((value) => [
      ['Authorization', 'Bearer «writer»'],
      ['Authorization', value],
    ]),
  ),
);

const tokenOf = (...names: string[]): fc.Arbitrary<Twist> =>
  withAddress(one('Authorization', fc.constantFrom(...names.map((name) => `Bearer «${name}»`))));

/** Valid credentials that may not write a post. */
export const weakCredentials = tokenOf('reader', 'chatter', 'expired', 'revoked');

/** Valid credentials that OpenAI's API does not take. */
export const chatless = tokenOf('reader', 'writer', 'stored', 'expired', 'revoked');

/** Valid credentials of a user who is no operator. */
export const notOperators = tokenOf('writer', 'chatter', 'reader');

/** Tokens of operators. */
export const operator: fc.Arbitrary<Header[]> = one(
  'Authorization',
  fc.constantFrom('Bearer «operator»', 'bearer   «operator»'),
);

/** Tokens that may write, in every spelling of the scheme. */
export const writer: fc.Arbitrary<Header[]> = one(
  'Authorization',
  fc.constantFrom(
    'Bearer «writer»',
    'Bearer «writer»',
    'bearer «writer»',
    'BEARER    «writer»',
    'Bearer «stored»',
  ),
);
