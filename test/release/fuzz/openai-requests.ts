import fc from 'fast-check';
import { providerIds } from '../../../shared/contract.js';
import { oddId } from './addresses.js';
import { brokenBody, jsonBody, withUnknownFields, withWrongType, wrongValue } from './bodies.js';
import type { Header } from './client.js';
import { chatless } from './credentials.js';
import * as headers from './headers.js';
import { one, type Plan, type PlannedBody, type Twist } from './plan.js';
import { requestsOf } from './requests.js';
import { canary, text } from './texts.js';

const model = fc
  .tuple(fc.constantFrom(...providerIds), fc.constantFrom('sim-echo', 'sim-length', 'sim-latency-5'))
  .map((names) => names.join('/'));

const words = fc.oneof(
  { weight: 8, arbitrary: text },
  { weight: 1, arbitrary: fc.constantFrom('', ' ', 'a\0b') },
);
const content = fc.oneof(
  { weight: 3, arbitrary: words },
  {
    weight: 1,
    arbitrary: fc.array(
      words.map((each) => ({ type: 'text', text: each })),
      { maxLength: 3 },
    ),
  },
);
const message = fc.record({ role: fc.constantFrom('system', 'developer', 'user', 'assistant'), content });

const parameters = { type: 'object', properties: { city: { type: 'string', maxLength: 9 } } };
const tools = [{ type: 'function', function: { name: 'weather', parameters, strict: true } }];
const jsonFormat = { type: 'json_schema', json_schema: { name: 'city', schema: parameters } };

/** Parameters that change a reply, or nothing; some providers do not support some of them. */
const settings = fc.record(
  {
    temperature: fc.oneof(fc.constantFrom(0, 1, null), fc.double({ min: 0, max: 2, noNaN: true })),
    top_p: fc.constantFrom(0.5, 1, null),
    max_tokens: fc.constantFrom(1, 50, null),
    max_completion_tokens: fc.constantFrom(1, 50, null),
    stop: fc.constantFrom('.', ['a', 'b'], [], null, '\u0000'),
    seed: fc.constantFrom(0, -1, 2 ** 31, null),
    frequency_penalty: fc.constantFrom(0, 0.5, 2, null),
    presence_penalty: fc.constantFrom(0, -2, null),
    reasoning_effort: fc.constantFrom('low', null),
    n: fc.constantFrom(1, null),
    stream: fc.boolean(),
    stream_options: fc.constantFrom({ include_usage: true }, {}, null),
    service_tier: fc.constantFrom('auto', 'flex', null),
    tools: fc.constantFrom([], null, tools),
    tool_choice: fc.constantFrom('auto', 'none', 'required', null),
    parallel_tool_calls: fc.constantFrom(true, false, null),
    response_format: fc.constantFrom({ type: 'text' }, null, jsonFormat),
    verbosity: fc.constantFrom('low', null),
    user: wrongValue,
    metadata: wrongValue,
  },
  { requiredKeys: [] },
);

const completion: fc.Arbitrary<object> = fc
  .tuple(model, fc.array(message, { maxLength: 5 }), text, settings)
  .map(([named, some, last, more]) => ({
    model: named,
    messages: [...some, { role: 'user', content: `x${last}` }],
    ...more,
  }));

const fieldNames = ['model', 'messages', 'stream', 'temperature', 'stop', 'tools', 'n', 'service_tier'];

const oddMessage: fc.Arbitrary<unknown> = fc.oneof(
  wrongValue,
  wrongValue.map((odd) => ({ role: odd, content: 'x' })),
  wrongValue.map((odd) => ({ role: 'user', content: odd })),
  fc
    .constantFrom('image_url', 'input_audio', '__proto__', 5)
    .map((type) => ({ role: 'user', content: [{ type }] })),
  fc.constantFrom('tool', 'function', 'User').map((role) => ({ role, content: 'x' })),
  canary.map((mark) => ({ role: mark, content: [{ type: mark }], tool_calls: [mark] })),
);

const bodies: fc.Arbitrary<PlannedBody> = fc.oneof(
  { weight: 12, arbitrary: jsonBody(completion) },
  { weight: 3, arbitrary: jsonBody(withUnknownFields(completion)) },
  {
    weight: 3,
    arbitrary: jsonBody(oddMessage.map((odd) => ({ model: 'openai/sim-echo', messages: [odd] }))),
  },
  { weight: 3, arbitrary: jsonBody(withWrongType(completion, fieldNames)) },
  {
    weight: 1,
    arbitrary: jsonBody(canary.map((mark) => ({ model: mark, messages: [{ role: 'user', content: 'x' }] }))),
  },
  {
    weight: 2,
    arbitrary: fc.oneof(
      { weight: 3, arbitrary: brokenBody(completion) },
      // Only images may make a body larger than that of any other operation.
      {
        weight: 1,
        arbitrary: jsonBody(completion.map((some) => ({ ...some, metadata: 'x'.repeat(1_048_577) }))),
      },
    ),
  },
);

const prefer = one(
  'Prefer',
  fc.constantFrom('respond-async', 'respond-async, wait=5', 'wait=300', 'handling=strict', 'return=x'),
);
const none = fc.constant<Header[]>([]);
const own: fc.Arbitrary<Header[]> = fc
  .tuple(
    fc.oneof({ weight: 6, arbitrary: none }, { weight: 1, arbitrary: prefer }),
    headers.idempotencyKey,
    fc.oneof(none, one('X-Stainless-Timeout', fc.constantFrom('600', '0', 'x', '')), headers.accept),
  )
  .map((some) => some.flat());

const user: fc.Arbitrary<Header[]> = one(
  'Authorization',
  fc.constantFrom('Basic «user»', 'basic «user»', 'Bearer «chatter»', 'bearer  «chatter»'),
);

const oddHeaders: fc.Arbitrary<Twist> = fc.oneof(
  fc
    .oneof(fc.constantFrom('', 'OpenAI', 'openai, openai', '__proto__', 'azure'), canary)
    .map((value): Twist => ({ odd: 'headers', own: [['X-LLM', value]] })),
  fc
    .oneof(
      fc.constantFrom('wait=0', 'wait=301', 'respond-async, wait'),
      canary.map((mark) => `wait=${mark}`),
    )
    .map((value): Twist => ({ odd: 'headers', own: [['Prefer', value]] })),
  headers.oddIdempotencyKey,
);

/** `POST /v1/chat/completions`. */
export const createChatCompletion: fc.Arbitrary<Plan> = requestsOf({
  ...{ methods: ['POST'], at: '/v1/chat/completions', credentials: user },
  ...{ contentType: headers.jsonType(), own, body: bodies, odd: [chatless, oddHeaders] },
});

/** `GET /v1/models`. */
export const listModels = requestsOf({ at: '/v1/models', credentials: user, odd: [chatless] });

/** `GET /v1/models/{id}`. */
export const getModel = requestsOf({
  at: fc
    .constantFrom('/v1/models/openai%2Fsim-echo', '/v1/models/vertexai/sim-echo')
    .map((path) => ({ path })),
  near: '/v1/models/openai/sim-echo',
  credentials: user,
  odd: [chatless, oddId('/v1/models'), oddId('/v1/models/openai')],
});
