import fc from 'fast-check';
import { providerIds } from '../../../shared/contract.js';
import { oddId, strangeQuery } from './addresses.js';
import { bodiesOf } from './bodies.js';
import { notOperators, operator } from './credentials.js';
import * as headers from './headers.js';
import { one, type Plan, type Twist } from './plan.js';
import { reads, requestsOf } from './requests.js';

/** With a query of these parameters, or a strange one. */
const reading = (
  at: string,
  parameters: readonly string[] = [],
  { methods = reads, odd = [] }: { methods?: string[]; odd?: fc.Arbitrary<Twist>[] } = {},
): fc.Arbitrary<Plan> => {
  const asked = fc.subarray([...parameters], { maxLength: Math.min(3, parameters.length) });
  const query = fc.oneof(
    strangeQuery,
    asked.map((all) => all.join('&')),
  );
  return requestsOf({ methods, at, query, credentials: operator, odd: [notOperators, ...odd] });
};

/** `GET /admin/pools`. */
export const getFleet = reading('/admin/pools');

/** `GET /admin/requests`. */
export const listRequests = reading('/admin/requests', [
  ...['provider=openai', 'provider=nobody', 'provider=', 'code=ok', 'code=overloaded', 'code=200', 'user=x'],
  ...['user=%00', 'user=%ff', 'limit=1', 'limit=1000', 'limit=1001', 'limit=0', 'limit=x', 'limit=2'],
]);

/** `GET /admin/samples`. */
export const getSamples = reading('/admin/samples', [
  ...['provider=bedrock', 'provider=OpenAI', 'provider=openai', 'provider=%F0'],
]);

/** `GET /admin/events`, whose answer to GET never ends. */
export const followFleet = reading(
  '/admin/events',
  ['include=requests', 'include=samples,requests', 'include=all', 'include=', 'include=samples,'],
  { methods: ['HEAD'] },
);

/** `GET /admin/pools/{provider}`. */
export const getPoolSettings: fc.Arbitrary<Plan> = fc.oneof(
  ...providerIds.map((id) => reading(`/admin/pools/${id}`, [], { odd: [oddId('/admin/pools')] })),
);

/** `GET /admin/pools/{provider}/jobs`. */
export const listJobs = reading(
  '/admin/pools/openai/jobs',
  [
    ...['state=active', 'state=waiting', 'state=completed', 'state=prioritized', 'state=', 'limit=1'],
    ...['limit=200', 'limit=201', 'offset=1', 'offset=9999', 'offset=0', 'offset=10000', 'offset=x'],
  ],
  { odd: [oddId('/admin/pools').map((twist) => ({ ...twist, path: `${twist.path}/jobs` }))] },
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
export const replacePoolSettings: fc.Arbitrary<Plan> = requestsOf({
  methods: ['PUT'],
  at: fc.constantFrom(...providerIds).map((id) => ({ path: `/admin/pools/${id}` })),
  near: '/admin/pools/openai',
  credentials: operator,
  contentType: headers.jsonType(),
  own: one(
    'If-Match',
    fc.oneof(
      fc.nat(60).map((version) => `"${version}"`),
      fc.constantFrom('*', '', '"x"', 'W/"1"', '1', '"01"', '"99999999999"', '"1", "2"'),
    ),
  ),
  body: bodiesOf({ sound: anySettings, beyond, names: Object.keys(settings) }),
  odd: [notOperators, oddId('/admin/pools')],
});
