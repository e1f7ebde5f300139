import fc from 'fast-check';
import { scopes } from '../../shared/contract.js';
import { oddAddress, oddId, strangeQuery } from './addresses.js';
import { brokenBody, jsonBody, withUnknownFields, withWrongType } from './bodies.js';
import * as credentials from './credentials.js';
import * as headers from './headers.js';
import type { Plan } from './plan.js';
import { canary } from './texts.js';
import { type Twist, twisted } from './twist.js';

/** Few enough that some are made, taken and removed again; never the owner of the operators' tokens. */
const name = fc.oneof(
  fc.nat(40).map((n) => `user ${n}`),
  fc.constantFrom('Zoë', '🎉', "'; drop table users --", '../x', 'a/b', '__proto__'),
);

const twists = (path: string, ...more: fc.Arbitrary<Twist>[]): fc.Arbitrary<Twist> =>
  fc.oneof(
    credentials.wrongCredentials,
    credentials.notOperators,
    headers.oddMethod,
    headers.unreadableHeaders,
    oddAddress(path),
    ...more,
  );

const listing = (path: string, parameters: fc.Arbitrary<string>): fc.Arbitrary<Plan> =>
  twisted(
    fc.record({
      method: fc.constantFrom('GET', 'GET', 'GET', 'HEAD'),
      path: fc.constant(path),
      query: fc.oneof(
        strangeQuery,
        fc
          .array(fc.oneof(parameters, limit), { minLength: 1, maxLength: 4 })
          .map((chosen) => chosen.join('&')),
      ),
      credentials: credentials.operator,
      own: headers.accept,
      others: headers.others,
    }),
    twists(path),
  );

const limit = fc.constantFrom('1', '200', '0', '201', '', '-1', '1e2', '%00').map((n) => `limit=${n}`);
const any = fc.oneof(
  name.map(encodeURIComponent),
  canary,
  fc.constantFrom('', '%00', '%', '%ff', 'a%3Ab', 'x'.repeat(501)),
);
const id = fc.oneof(fc.uuid(), fc.constantFrom('', '0', '%00'), canary);

/** `GET /admin/users`. */
export const listUsers = listing(
  '/admin/users',
  any.map((value) => `after=${value}`),
);

/** `GET /admin/tokens`. */
export const listTokens = listing(
  '/admin/tokens',
  id.map((value) => `before=${value}`),
);

/** `GET /admin/audit`. */
export const listAudit = listing(
  '/admin/audit',
  fc.oneof(
    id.map((value) => `before=${value}`),
    any.map((value) => `actor=${value}`),
    any.map((value) => `target=${value}`),
    fc.constantFrom('users.add', 'pools.set', 'users', '').map((value) => `action=${value}`),
  ),
);

interface Bodies {
  sound: fc.Arbitrary<object>;
  beyond: fc.Arbitrary<object>;
  fields: readonly string[];
}

const creating = (path: string, { sound, beyond, fields }: Bodies): fc.Arbitrary<Plan> =>
  twisted(
    fc.record({
      method: fc.constant('POST'),
      path: fc.constant(path),
      query: strangeQuery,
      credentials: credentials.operator,
      contentType: headers.jsonType(),
      others: headers.others,
      body: fc.oneof(
        { weight: 12, arbitrary: jsonBody(sound) },
        { weight: 3, arbitrary: jsonBody(withUnknownFields(sound)) },
        {
          weight: 4,
          arbitrary: jsonBody(fc.tuple(sound, beyond).map(([some, fault]) => ({ ...some, ...fault }))),
        },
        { weight: 3, arbitrary: jsonBody(withWrongType(sound, fields)) },
        { weight: 2, arbitrary: brokenBody(sound) },
      ),
    }),
    twists(path, headers.oddMediaType, headers.oddEncoding),
  );

const badName = fc.constantFrom('', 'a:b', 'a\nb', '\0', 'x'.repeat(129), '🎉'.repeat(65));

/** `POST /admin/users`. */
export const createUser = creating('/admin/users', {
  sound: fc.record({ name, role: fc.constantFrom('user', 'admin') }, { requiredKeys: ['name'] }),
  beyond: fc.oneof(
    badName.map((bad) => ({ name: bad })),
    fc.constant({ role: 'root' }),
  ),
  fields: ['name', 'role'],
});

/** `POST /admin/tokens`. */
export const createToken = creating('/admin/tokens', {
  sound: fc.record(
    {
      owner: name,
      scopes: fc.subarray([...scopes], { minLength: 1 }),
      expiresInDays: fc.oneof(fc.integer({ min: 1, max: 3650 }), fc.constant(null)),
    },
    { requiredKeys: ['owner', 'scopes'] },
  ),
  beyond: fc.oneof(
    badName.map((bad) => ({ owner: bad })),
    fc.constantFrom({ scopes: [] }, { scopes: ['root'] }, { scopes: Array(5).fill('chat') }),
    fc.constantFrom({ expiresInDays: 0 }, { expiresInDays: 3651 }, { expiresInDays: 0.5 }),
  ),
  fields: ['owner', 'scopes', 'expiresInDays'],
});

/** `POST /admin/preview`. */
export const preview = creating('/admin/preview', {
  sound: fc.record({
    content: fc.oneof(canary, fc.constantFrom('# A *b*', '<script>', '[a](javascript:b)', '')),
  }),
  beyond: fc.constantFrom({ content: '\0' }, { content: 'x'.repeat(262_145) }, { content: null }),
  fields: ['content'],
});

const removing = (path: string, last: fc.Arbitrary<string>): fc.Arbitrary<Plan> =>
  twisted(
    fc.record({
      method: fc.constant('DELETE'),
      path: last.map((step) => `${path}/${step}`),
      query: strangeQuery,
      credentials: credentials.operator,
      others: headers.others,
    }),
    twists(path, oddId(path)),
  );

/** `DELETE /admin/users/{name}`; `owner` is whose the operators' tokens are. */
export const removeUser = removing(
  '/admin/users',
  fc.oneof(name.map(encodeURIComponent), fc.constant('owner')),
);

/** `POST /admin/users/{name}/secret`. */
export const resetSecret: fc.Arbitrary<Plan> = twisted(
  fc.record({
    method: fc.constant('POST'),
    path: fc
      .oneof(name.map(encodeURIComponent), fc.constantFrom('nobody', 'a%3Ab', '%00'))
      .map((step) => `/admin/users/${step}/secret`),
    query: strangeQuery,
    credentials: credentials.operator,
    others: headers.others,
  }),
  twists('/admin/users/nobody/secret'),
);

/** `DELETE /admin/tokens/{id}`. */
export const revokeToken = removing('/admin/tokens', fc.oneof(fc.uuid(), fc.constant('«token»')));
