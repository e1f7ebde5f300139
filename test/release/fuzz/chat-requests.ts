import fc from 'fast-check';
import { providerIds } from '../../../shared/contract.js';
import { oddId } from './addresses.js';
import { brokenBody, jsonBody, withUnknownFields, withWrongType, wrongValue } from './bodies.js';
import type { Header } from './client.js';
import { weakCredentials } from './credentials.js';
import * as headers from './headers.js';
import { numberedChats, one, type Plan, type PlannedBody, type Twist } from './plan.js';
import { reads, requestsOf } from './requests.js';
import { canary, text, unstorable } from './texts.js';

const role = fc.constantFrom('system', 'user', 'assistant');

const content = fc.oneof(
  { weight: 8, arbitrary: text },
  { weight: 1, arbitrary: fc.constantFrom('', ' ', '\u200b', '\0', 'a\0b') },
);

const message = fc.record({ role, content }, { requiredKeys: [] });
const spoken = text.map((words) => ({ content: `x${words}` }));

const conversation: fc.Arbitrary<object> = fc.oneof(
  {
    weight: 30,
    arbitrary: fc
      .tuple(fc.array(message, { maxLength: 6 }), spoken)
      .map(([some, last]) => ({ messages: [...some, last] })),
  },
  { weight: 8, arbitrary: fc.array(message, { maxLength: 6 }).map((messages) => ({ messages })) },
  {
    weight: 1,
    arbitrary: fc
      .tuple(spoken, role)
      .map(([one, who]) => ({ messages: Array.from({ length: 1000 }, () => ({ role: who, ...one })) })),
  },
  {
    weight: 1,
    arbitrary: fc
      .constantFrom('x', '🎉')
      .map((character) => ({ messages: [{ content: character.repeat(100_000) }] })),
  },
);

const oddMessage: fc.Arbitrary<unknown> = fc.oneof(
  wrongValue,
  wrongValue.map((odd) => ({ role: odd, content: 'x' })),
  wrongValue.map((odd) => ({ content: odd })),
  fc.constantFrom('tool', 'User', '', '__proto__', 'user ').map((odd) => ({ role: odd, content: 'x' })),
  canary.map((mark) => ({ role: mark, content: mark })),
  unstorable.map((odd) => ({ content: odd })),
  fc.constant({ role: ['user'], content: 'x' }),
);

const bodies: fc.Arbitrary<PlannedBody> = fc.oneof(
  { weight: 10, arbitrary: jsonBody(conversation) },
  { weight: 2, arbitrary: jsonBody(withUnknownFields(conversation)) },
  { weight: 3, arbitrary: jsonBody(fc.tuple(message, oddMessage).map((messages) => ({ messages }))) },
  { weight: 2, arbitrary: jsonBody(withWrongType(conversation, ['messages'])) },
  {
    weight: 1,
    arbitrary: jsonBody(fc.constant({ messages: Array.from({ length: 1001 }, () => ({ content: 'x' })) })),
  },
  { weight: 2, arbitrary: brokenBody(conversation) },
);

const models = ['sim-echo', 'sim-length', 'sim-latency-5'];

const patience: fc.Arbitrary<Header[]> = fc.oneof(
  { weight: 6, arbitrary: fc.constant<Header[]>([]) },
  {
    weight: 1,
    arbitrary: one(
      'Prefer',
      fc.constantFrom(
        'respond-async',
        'respond-async, wait=5',
        'Wait = 300',
        'respond-async=no',
        'return=x',
        'handling=strict',
        'handling="STRICT", wait=5, respond-async',
      ),
    ),
  },
);

const own: fc.Arbitrary<Header[]> = fc
  .tuple(
    fc.constantFrom(...providerIds),
    fc.option(fc.constantFrom(...models), { nil: undefined }),
    headers.accept,
    patience,
    headers.idempotencyKey,
  )
  .map(([provider, model, ...more]) => [
    ['X-LLM', provider],
    ...(model ? [['X-LLM-Model', model] as const] : []),
    ...more.flat(),
  ]);

const oddProvider: fc.Arbitrary<Header[]> = fc.oneof(
  fc.constant<Header[]>([]),
  fc.constant<Header[]>([
    ['X-LLM', 'openai'],
    ['X-LLM', 'openai'],
  ]),
  fc
    .constantFrom('', 'OpenAI', 'openai,anthropic', '__proto__', 'constructor', 'azure')
    .map((value): Header[] => [['X-LLM', value]]),
  canary.map((mark): Header[] => [['X-LLM', mark]]),
);

const oddModel: fc.Arbitrary<Header[]> = fc
  .oneof(
    fc.constantFrom(
      '',
      '..',
      'a b',
      '../../admin',
      '-x',
      'x'.repeat(257),
      'é',
      'a\\b',
      '%2e%2e',
      'sim-echo?x',
    ),
    canary.map((mark) => `${mark} `),
  )
  .filter((model) => model.trim() === model)
  .map((model) => [
    ['X-LLM', 'openai'],
    ['X-LLM-Model', model],
  ]);

const oddPatience: fc.Arbitrary<Header[]> = fc.oneof(
  fc
    .constantFrom('wait=0', 'wait=301', 'wait=-1', 'respond-async, wait', 'wait="1e2"')
    .map((value): Header[] => [['Prefer', value]]),
  canary.map((mark): Header[] => [['Prefer', `wait=${mark}`]]),
);

const user: fc.Arbitrary<Header[]> = fc
  .constantFrom('Basic', 'basic', 'BASIC  ')
  .map((scheme) => [['Authorization', `${scheme} «user»`]]);

/** `POST /chat`. */
export const chat: fc.Arbitrary<Plan> = requestsOf({
  methods: ['POST'],
  at: fc.constantFrom('/chat', '/chat', '/v1/chat').map((path) => ({ path })),
  near: '/chat',
  ...{ credentials: user, contentType: headers.jsonType(), own, body: bodies },
  odd: [
    weakCredentials,
    fc.oneof(oddProvider, oddModel).map((odd): Twist => ({ odd: 'headers', own: odd })),
    oddPatience.map((odd): Twist => ({ odd: 'headers', own: [['X-LLM', 'openai'], ...odd] })),
    headers.oddIdempotencyKey.map(
      (twist): Twist => ({ ...twist, own: [['X-LLM', 'openai'], ...(twist.own ?? [])] }),
    ),
  ],
});

const oneChat = (...methods: string[]): fc.Arbitrary<Plan> =>
  requestsOf({
    methods,
    at: fc
      .tuple(fc.constantFrom('/chat', '/v1/chat'), fc.nat(numberedChats - 1))
      .map(([base, n]) => ({ path: `${base}/«chat ${n}»` })),
    ...{ near: '/chat/«chat 1»', credentials: user, odd: [weakCredentials, oddId('/chat'), oddId('/chat')] },
  });

/** `GET /chat/{id}`. */
export const getChat = oneChat(...reads);

/** `DELETE /chat/{id}`. */
export const cancelChat = oneChat('DELETE');
