import fc from 'fast-check';
import { oddAddress, strangeQuery } from './addresses.js';
import * as credentials from './credentials.js';
import * as headers from './headers.js';
import type { Plan } from './plan.js';
import { twisted } from './twist.js';

/** `GET /admin/pools`. */
export const getFleet: fc.Arbitrary<Plan> = twisted(
  fc.record({
    method: fc.constantFrom('GET', 'GET', 'GET', 'HEAD'),
    path: fc.constant('/admin/pools'),
    query: strangeQuery,
    credentials: credentials.operator,
    own: headers.accept,
    others: headers.others,
  }),
  fc.oneof(
    credentials.wrongCredentials,
    credentials.notOperators,
    headers.oddMethod,
    headers.unreadableHeaders,
    oddAddress('/admin/pools'),
  ),
);
