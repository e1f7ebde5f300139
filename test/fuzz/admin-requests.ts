import fc from 'fast-check';
import { oddAddress, strangeQuery } from './addresses.js';
import * as credentials from './credentials.js';
import * as headers from './headers.js';
import type { Plan } from './plan.js';
import { twisted } from './twist.js';

/** `method` is that of requests that nothing is wrong with. */
const reading = (path: string, method: fc.Arbitrary<string>): fc.Arbitrary<Plan> =>
  twisted(
    fc.record({
      method,
      path: fc.constant(path),
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
      oddAddress(path),
    ),
  );

/** `GET /admin/pools`. */
export const getFleet = reading('/admin/pools', fc.constantFrom('GET', 'GET', 'GET', 'HEAD'));

/** `GET /admin/events`, whose answer to GET never ends. */
export const followFleet = reading('/admin/events', fc.constant('HEAD'));
