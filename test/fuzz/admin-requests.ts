import fc from 'fast-check';
import { providerIds } from '../../shared/contract.js';
import { oddAddress, oddId, strangeQuery } from './addresses.js';
import { brokenBody, jsonBody, withUnknownFields, withWrongType } from './bodies.js';
import * as credentials from './credentials.js';
import * as headers from './headers.js';
import type { Plan } from './plan.js';
import { type Twist, twisted } from './twist.js';

/** `method` is that of requests that nothing is wrong with. */
const reading = (
  path: string,
  method: fc.Arbitrary<string>,
  ...twists: fc.Arbitrary<Twist>[]
): fc.Arbitrary<Plan> =>
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
      ...twists,
    ),
  );

/** `GET /admin/pools`. */
export const getFleet = reading('/admin/pools', fc.constantFrom('GET', 'GET', 'GET', 'HEAD'));

/** A query of these parameters, or a strange one. */
const asking = (...parameters: string[]): fc.Arbitrary<string | undefined> =>
  fc.oneof(
    strangeQuery,
    fc.subarray(parameters, { minLength: 1, maxLength: 3 }).map((all) => all.join('&')),
  );

const queried = (
  path: string,
  method: fc.Arbitrary<string>,
  query: fc.Arbitrary<string | undefined>,
  ...twists: fc.Arbitrary<Twist>[]
): fc.Arbitrary<Plan> =>
  fc
    .tuple(reading(path, method, ...twists), query)
    .map(([plan, asked]) => (plan.odd ? plan : { ...plan, query: asked }));

/** `GET /admin/requests`. */
export const listRequests = queried(
  '/admin/requests',
  fc.constantFrom('GET', 'GET', 'GET', 'HEAD'),
  asking(
    ...[
      'provider=openai',
      'provider=nobody',
      'provider=',
      'code=ok',
      'code=overloaded',
      'code=200',
      'user=x',
    ],
    ...['user=%00', 'user=%ff', 'limit=1', 'limit=1000', 'limit=1001', 'limit=0', 'limit=x', 'limit=2'],
  ),
);

/** `GET /admin/samples`. */
export const getSamples = queried(
  '/admin/samples',
  fc.constantFrom('GET', 'GET', 'GET', 'HEAD'),
  asking('provider=bedrock', 'provider=OpenAI', 'provider=openai', 'provider=%F0'),
);

/** `GET /admin/events`, whose answer to GET never ends. */
export const followFleet = queried(
  '/admin/events',
  fc.constant('HEAD'),
  asking('include=requests', 'include=samples,requests', 'include=all', 'include=', 'include=samples,'),
);

/** `GET /admin/pools/{provider}`. */
export const getPoolSettings: fc.Arbitrary<Plan> = fc.oneof(
  ...providerIds.map((id) =>
    reading(`/admin/pools/${id}`, fc.constantFrom('GET', 'GET', 'GET', 'HEAD'), oddId('/admin/pools')),
  ),
);

/** `GET /admin/pools/{provider}/jobs`. */
export const listJobs = queried(
  '/admin/pools/openai/jobs',
  fc.constantFrom('GET', 'GET', 'GET', 'HEAD'),
  asking(
    ...['state=active', 'state=waiting', 'state=completed', 'state=prioritized', 'state=', 'limit=1'],
    ...['limit=200', 'limit=201', 'offset=1', 'offset=9999', 'offset=0', 'offset=10000', 'offset=x'],
  ),
  oddId('/admin/pools').map((twist) => ({ ...twist, path: `${twist.path}/jobs` })),
);

const milliseconds = fc.integer({ min: 100, max: 3_600_000 });

/** Nothing that keeps other requests from being answered. */
const settings = {
  concurrency: fc.integer({ min: 5, max: 10_000 }),
  globalConcurrency: fc.integer({ min: 20, max: 1_000_000 }),
  rate: fc.record({
    max: fc.integer({ min: 1000, max: 1_000_000 }),
    durationMs: fc.integer({ min: 100, max: 1000 }),
  }),
  breaker: fc.constant('closed'),
  firstTokenTimeoutMs: milliseconds,
  idleTimeoutMs: milliseconds,
  fallbackAfterMs: milliseconds,
  models: fc.array(fc.stringMatching(/^[a-z*][a-z0-9*-]{0,20}$/), { maxLength: 5 }),
  fallback: fc.constantFrom([], [{ provider: 'bedrock' }], [{ provider: 'vertexai', model: 'sim-echo' }]),
};
const anySettings: fc.Arbitrary<object> = fc.record(settings, { requiredKeys: [] });

const beyond: fc.Arbitrary<object> = fc.constantFrom(
  { concurrency: 0 },
  { concurrency: 1.5 },
  { rate: { max: 1 } },
  { rate: { max: 1, durationMs: 100, burst: 2 } },
  { intake: 'stopped' },
  { timeoutMs: 1e12 },
  { model: '../x' },
  { models: Array.from({ length: 51 }, () => 'm') },
  { fallback: [{ provider: 'nobody' }] },
);

/** `PUT /admin/pools/{provider}`. */
export const replacePoolSettings: fc.Arbitrary<Plan> = twisted(
  fc.record({
    method: fc.constant('PUT'),
    path: fc.constantFrom(...providerIds).map((id) => `/admin/pools/${id}`),
    query: strangeQuery,
    credentials: credentials.operator,
    contentType: headers.jsonType(),
    own: fc
      .oneof(
        fc.nat(60).map((version) => `"${version}"`),
        fc.constantFrom('*', '', '"x"', 'W/"1"', '1', '"01"', '"99999999999"', '"1", "2"'),
      )
      .map((tag): [[string, string]] => [['If-Match', tag]]),
    others: headers.others,
    body: fc.oneof(
      { weight: 12, arbitrary: jsonBody(anySettings) },
      { weight: 3, arbitrary: jsonBody(withUnknownFields(anySettings)) },
      {
        weight: 4,
        arbitrary: jsonBody(fc.tuple(anySettings, beyond).map(([some, fault]) => ({ ...some, ...fault }))),
      },
      { weight: 3, arbitrary: jsonBody(withWrongType(anySettings, Object.keys(settings))) },
      { weight: 2, arbitrary: brokenBody(anySettings) },
    ),
  }),
  fc.oneof(
    credentials.wrongCredentials,
    credentials.notOperators,
    headers.oddMethod,
    headers.oddMediaType,
    headers.oddEncoding,
    headers.unreadableHeaders,
    oddAddress('/admin/pools/openai'),
    oddId('/admin/pools'),
  ),
);
