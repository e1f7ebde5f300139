import fc from 'fast-check';
import { oddAddress, strangeQuery } from './addresses.js';
import type { Header } from './client.js';
import { wrongCredentials } from './credentials.js';
import * as headers from './headers.js';
import type { Plan, PlannedBody, Twist } from './plan.js';

/** The requests of one operation, apart from what is odd with any. */
interface Requests {
  /** Each as often as it stands here. */
  readonly methods?: readonly string[];
  /** Its path, or paths with the headers that belong to them. */
  readonly at: string | fc.Arbitrary<Pick<Plan, 'path' | 'own'>>;
  /** A path of its own, for the addresses around it. */
  readonly near?: string;
  readonly query?: fc.Arbitrary<string | undefined>;
  readonly credentials: fc.Arbitrary<Header[]>;
  /** Wrong credentials, and none where that is wrong. */
  readonly wrong?: fc.Arbitrary<Twist>;
  readonly own?: fc.Arbitrary<Header[]>;
  /** Given for an operation that reads a body. */
  readonly contentType?: fc.Arbitrary<Header[]>;
  readonly body?: fc.Arbitrary<PlannedBody | undefined>;
  /** More that may be odd, credentials of others among it. */
  readonly odd: readonly fc.Arbitrary<Twist>[];
}

export const reads = ['GET', 'GET', 'GET', 'HEAD'];

/** One of three with one thing that is odd. */
export function requestsOf(requests: Requests): fc.Arbitrary<Plan> {
  const { methods = reads, at, near = String(at), contentType, odd, wrong = wrongCredentials } = requests;
  const place = typeof at === 'string' ? fc.constant({ path: at }) : at;
  const plan = fc.record({
    method: fc.constantFrom(...methods),
    query: requests.query ?? strangeQuery,
    credentials: requests.credentials,
    own: requests.own ?? headers.accept,
    others: headers.others,
    contentType: contentType ?? fc.constant(undefined),
    body: requests.body ?? fc.constant(undefined),
  });
  const plans = fc.tuple(plan, place).map(([some, placed]): Plan => ({ ...some, ...placed }));
  const twists = fc.oneof(
    ...(contentType ? [headers.oddMediaType, headers.oddEncoding] : []),
    ...[wrong, headers.oddMethod, headers.unreadableHeaders, oddAddress(near)],
    ...odd,
  );
  return fc.oneof(
    { weight: 2, arbitrary: plans },
    { weight: 1, arbitrary: fc.tuple(plans, twists).map(([some, twist]) => ({ ...some, ...twist })) },
  );
}
