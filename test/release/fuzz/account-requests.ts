import fc from 'fast-check';
import { scopes } from '../../../shared/contract.js';
import { oddId, strangeQuery } from './addresses.js';
import { bodiesOf } from './bodies.js';
import { notOperators, operator } from './credentials.js';
import * as headers from './headers.js';
import type { Plan } from './plan.js';
import { requestsOf } from './requests.js';
import { canary } from './texts.js';

/** Few enough that some are made, taken and removed again; never the owner of the operators' tokens. */
const name = fc.oneof(
  fc.nat(40).map((n) => `user ${n}`),
  fc.constantFrom('Zoë', '🎉', "'; drop table users --", '../x', 'a/b', '__proto__'),
);

const listing = (at: string, parameters: fc.Arbitrary<string>): fc.Arbitrary<Plan> => {
  const asked = fc.array(fc.oneof(parameters, limit), { minLength: 1, maxLength: 4 });
  const query = fc.oneof(
    strangeQuery,
    asked.map((chosen) => chosen.join('&')),
  );
  return requestsOf({ at, query, credentials: operator, odd: [notOperators] });
};

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

const creating = (at: string, fields: Parameters<typeof bodiesOf>[0]): fc.Arbitrary<Plan> =>
  requestsOf({
    ...{ methods: ['POST'], at, credentials: operator, odd: [notOperators] },
    ...{ own: fc.constant([]), contentType: headers.jsonType(), body: bodiesOf(fields) },
  });

const badName = fc.constantFrom('', 'a:b', 'a\nb', '\0', 'x'.repeat(129), '🎉'.repeat(65));

/** `POST /admin/users`. */
export const createUser = creating('/admin/users', {
  sound: fc.record({ name, role: fc.constantFrom('user', 'admin') }, { requiredKeys: ['name'] }),
  beyond: fc.oneof(
    badName.map((bad) => ({ name: bad })),
    fc.constant({ role: 'root' }),
  ),
  names: ['name', 'role'],
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
  names: ['owner', 'scopes', 'expiresInDays'],
});

/** `POST /admin/preview`. */
export const preview = creating('/admin/preview', {
  sound: fc.record({
    content: fc.oneof(canary, fc.constantFrom('# A *b*', '<script>', '[a](javascript:b)', '')),
  }),
  beyond: fc.constantFrom({ content: '\0' }, { content: 'x'.repeat(262_145) }, { content: null }),
  names: ['content'],
});

const named = name.map(encodeURIComponent);

const removing = (near: string, last: fc.Arbitrary<string>): fc.Arbitrary<Plan> =>
  requestsOf({
    ...{ methods: ['DELETE'], at: last.map((step) => ({ path: `${near}/${step}`, own: [] })), near },
    ...{ credentials: operator, odd: [notOperators, oddId(near)] },
  });

/** `DELETE /admin/users/{name}`; `owner` is whose the operators' tokens are. */
export const removeUser = removing('/admin/users', fc.oneof(named, fc.constant('owner')));

/** `POST /admin/users/{name}/secret`. */
export const resetSecret: fc.Arbitrary<Plan> = requestsOf({
  methods: ['POST'],
  at: fc
    .oneof(named, fc.constantFrom('nobody', 'a%3Ab', '%00'))
    .map((step) => ({ path: `/admin/users/${step}/secret`, own: [] })),
  ...{ near: '/admin/users/nobody/secret', credentials: operator, odd: [notOperators] },
});

/** `DELETE /admin/tokens/{id}`. */
export const revokeToken = removing('/admin/tokens', fc.oneof(fc.uuid(), fc.constant('«token»')));
