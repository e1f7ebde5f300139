import type { Schema } from './docs.js';

const chatId = '6f9d0c1e-4b7a-4f3e-9a51-2c8d7e6b5a40';
const post = {
  title: 'Hello',
  content: 'My *first* post.',
  tags: ['news'],
  slug: 'hello',
  status: 'published',
} as const;
const storedPost = {
  id: '019a8f3e-5c71-7d2a-b3f4-0a1b2c3d4e5f',
  ...post,
  author: 'demo',
  publishedAt: '2026-11-21T09:30:00.000Z',
  createdAt: '2026-11-21T09:30:00.000Z',
  updatedAt: '2026-11-21T09:30:00.000Z',
  version: 1,
};

/** Realistic examples of requests and answers, by the name of the schema. */
const written: Readonly<Record<string, unknown>> = {
  ChatRequest: {
    messages: [
      { role: 'system', content: 'Answer in one sentence.' },
      { role: 'user', content: 'Why is the sky blue?' },
    ],
  },
  ChatResponse: { response: 'Air scatters blue light more than red.' },
  AcceptedChat: { id: chatId, status: 'queued' },
  Chat: {
    id: chatId,
    status: 'completed',
    provider: 'openai',
    model: 'gpt-6-luna',
    createdAt: '2026-11-21T09:30:00.000Z',
    completedAt: '2026-11-21T09:30:02.417Z',
    response: 'Air scatters blue light more than red.',
  },
  Problem: {
    type: 'urn:quillgate:problem:invalid_request',
    title: 'Invalid request',
    status: 400,
    detail: 'The request does not have the documented shape.',
    code: 'invalid_request',
    requestId: '0b6f1c52-9c0e-4f57-8d34-5b1a7e2f9c61',
    errors: [{ pointer: '/messages/0/content', detail: 'must be a string' }],
  },
  SignInInput: { name: 'ann', secret: 'b0TKRYGQ8ZpcjbcRV8x2xDCoSH5dWDnO' },
  PreviewInput: { content: 'My *first* post.' },
  PoolSettingsInput: { concurrency: 40, rate: { max: 600, durationMs: 60_000 } },
  UserInput: { name: 'ann', role: 'admin' },
  TokenInput: { owner: 'ann', scopes: ['chat'], expiresInDays: 30 },
  PostInput: post,
  PostPatch: { title: 'Hello again', tags: ['news', 'update'] },
  Post: storedPost,
  PostPage: { data: [storedPost], next: null },
};

/** The values of properties in the examples that are made; times are told by their names, and other numbers are 1. */
const values: Readonly<Record<string, string | number>> = {
  name: 'ann',
  owner: 'ann',
  actor: 'ann',
  changedBy: 'ann',
  user: 'demo',
  targetName: 'openai',
  token: `qg_${'x'.repeat(38)}`,
  secret: 'x'.repeat(32),
  html: '<p>My <em>first</em> post.</p>',
  model: 'gpt-6-luna',
  defaultModel: 'gpt-6-luna',
  worker: 'worker-1-27-5f0c9a1e',
  host: 'worker-1',
  reason: 'provider_timeout',
  code: 'provider_timeout',
  next: '100',
  release: '0.5.0',
  id: chatId,
  pausedBy: 'ann',
  targetId: '2a1c9a55-6f7b-5d1e-8a50-1f3e5d7c9b20',
  concurrency: 20,
  inFlight: 7,
  active: 7,
  everyMs: 5000,
  p50: 2900,
  p95: 6100,
  meanJobMs: 3120,
  errorRate: 0.05,
  rateLimitRate: 0,
  firstTokenMs: 640,
  endedMs: 3120,
  providerMs: 3105,
};
const time = '2026-11-21T09:30:00.000Z';

/** The example of the schema with this name: written by hand, or else made from its properties. */
export const exampleOf = (name: string, schemas: Readonly<Record<string, Schema>>): unknown =>
  written[name] ?? makeExample(schemas[name] ?? {}, { name, schemas });

function makeExample(
  schema: Schema,
  of: { name: string; schemas: Readonly<Record<string, Schema>> },
): unknown {
  const { type, properties, items, anyOf: [first] = [], $ref = schema.allOf?.[0]?.$ref } = schema;
  if ($ref !== undefined) return exampleOf($ref.split('/').at(-1) ?? '', of.schemas);
  if (first !== undefined) return makeExample(first, of);
  if (schema.enum) return schema.enum[0];
  if (type === 'array') return items ? [makeExample(items, of)] : [];
  if (type === 'string') return values[of.name] ?? (/(At|Since)$|^(at|since)$/.test(of.name) ? time : 'text');
  if (type === 'number') return values[of.name] ?? 1;
  if (type === 'boolean') return false;
  const made = Object.entries(properties ?? {}).map(([name, each]) => [
    name,
    each.nullable && each.properties ? null : makeExample(each, { ...of, name }),
  ]);
  return Object.fromEntries(made);
}
