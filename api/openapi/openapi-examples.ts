/** Realistic examples of requests and answers, by the name of the schema. */
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

const model = {
  ...{ id: 'openai/gpt-5-mini', object: 'model', created: 1_795_253_400, owned_by: 'openai' },
} as const;

const worker = {
  ...{ worker: 'worker-1-27-5f0c9a1e', state: 'serving', concurrency: 20, inFlight: 7 },
  ...{ oldestJobSince: '2026-11-21T09:29:52.120Z', meanJobMs: 3120, defaultModel: 'gpt-5-mini' },
  breakers: [
    {
      ...{ model: 'gpt-5', state: 'open', reason: 'provider_timeout' },
      nextProbeAt: '2026-11-21T09:30:21.004Z',
    },
  ],
  calls: { count: 140, errorRate: 0.05, rateLimitRate: 0, latencyMs: { p50: 2900, p95: 6100 } },
  lastError: {
    ...{ code: 'provider_timeout', at: '2026-11-21T09:29:51.004Z', since: '2026-11-21T09:28:02.310Z' },
  },
  ...{ simulated: false, settingsVersion: 3, release: '0.5.0', host: 'worker-1' },
} as const;
const absent = {
  ...{ state: 'absent', kind: 'unknown', concurrency: 0, inFlight: 0 },
  queue: { waiting: 0, active: 0 },
  workers: [],
} as const;

const userId = '0c9f7d7e-52a1-4b8e-b0ce-1d2e3f405162';
const token = {
  ...{ id: '019a8f3e-5c71-7d2a-b3f4-0a1b2c3d4e60', owner: 'ann', scopes: ['chat'] },
  ...{ createdAt: '2026-11-21T09:30:00.000Z', expiresAt: '2026-12-21T09:30:00.000Z' },
  ...{ lastUsedAt: null, revokedAt: null },
};

export const schemaExamples: Readonly<Record<string, unknown>> = {
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
    model: 'gpt-5-mini',
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
  ChatCompletionRequest: {
    model: 'openai/gpt-5-mini',
    messages: [{ role: 'user', content: 'Why is the sky blue?' }],
  },
  ChatCompletion: {
    ...{ id: `chatcmpl-${chatId}`, object: 'chat.completion', created: 1_795_253_400 },
    model: 'openai/gpt-5-mini',
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: 'Air scatters blue light more than red.', refusal: null },
        ...{ logprobs: null, finish_reason: 'stop' },
      },
    ],
    usage: { prompt_tokens: 12, completion_tokens: 9, total_tokens: 21 },
  },
  SignInInput: { name: 'ann', secret: 'b0TKRYGQ8ZpcjbcRV8x2xDCoSH5dWDnO' },
  PreviewInput: { content: 'My *first* post.' },
  Preview: { html: '<p>My <em>first</em> post.</p>\n' },
  ConsoleSession: {
    user: { id: '0d4c2a0e-6f0b-4a3e-8f53-6f1f0c8a2b77', name: 'ann' },
    expiresAt: '2026-11-21T21:30:00.000Z',
  },
  RecentRequests: {
    ...{ at: '2026-11-21T09:30:00.000Z', processes: 2, isPartial: false },
    requests: [
      {
        ...{ id: chatId, user: 'demo', provider: 'openai', model: 'gpt-5-mini', streamed: true },
        ...{
          receivedAt: '2026-11-21T09:29:52.120Z',
          queuedMs: 2,
          startedMs: 9,
          firstTokenMs: 640,
          endedMs: 3120,
        },
        ...{ queueMs: 7, providerMs: 3105, code: 'ok', inputTokens: 12, outputTokens: 173 },
        attempts: [{ provider: 'openai', model: 'gpt-5-mini', code: 'ok' }],
      },
    ],
  },
  Samples: {
    ...{ at: '2026-11-21T09:30:00.000Z', processes: 2, isPartial: false, everyMs: 5000 },
    samples: [
      {
        ...{ provider: 'openai', at: '2026-11-21T09:29:55.000Z', waiting: 3, active: 7, inFlight: 7 },
        ...{ concurrency: 20, arrivals: 12, ended: 11, failed: 1 },
        ...{ queueMs: { p50: 4, p95: 210 }, providerMs: { p50: 2900, p95: 6100 } },
      },
    ],
  },
  PoolJobPage: {
    data: [
      {
        ...{ id: chatId, state: 'active', attempts: 1, addedAt: '2026-11-21T09:29:58.120Z' },
        ...{ startedAt: '2026-11-21T09:29:58.131Z', endedAt: null },
      },
    ],
    next: '100',
  },
  Fleet: {
    at: '2026-11-21T09:30:00.000Z',
    release: '0.5.0',
    queue: { store: 'redis', status: 'ok' },
    providers: [
      {
        ...{ provider: 'openai', state: 'serving', kind: 'real', concurrency: 20, inFlight: 7 },
        queue: { waiting: 2, active: 7, oldestSince: '2026-11-21T09:29:59.410Z' },
        workers: [worker],
      },
      ...['anthropic', 'bedrock', 'vertexai'].map((provider) => ({ provider, ...absent })),
    ],
  },
  PoolSettingsInput: { concurrency: 40, rate: { max: 600, durationMs: 60_000 } },
  PoolSettings: {
    ...{ provider: 'openai', version: 3, changedAt: '2026-11-21T09:30:00.000Z', changedBy: 'ann' },
    settings: [
      { name: 'concurrency', value: 40, source: 'override' },
      { name: 'timeoutMs', value: 45_000, source: 'default' },
    ],
    concurrency: { workers: 80, boundBy: 'workers' },
    workers: { live: 2, current: 2 },
  },
  UserInput: { name: 'ann', role: 'admin' },
  UserSecret: { id: userId, name: 'ann', secret: 'x'.repeat(32) },
  UserPage: {
    data: [
      { id: userId, name: 'ann', role: 'admin', hasSecret: true, createdAt: '2026-11-21T09:30:00.000Z' },
    ],
    next: null,
  },
  TokenInput: { owner: 'ann', scopes: ['chat'], expiresInDays: 30 },
  NewToken: { token: `qg_${'x'.repeat(38)}`, info: token },
  TokenPage: { data: [token], next: null },
  AuditPage: {
    data: [
      {
        ...{ id: '5f0f8f0e-3f4b-4c58-9d0e-6a1f0c7b2d11', at: '2026-11-21T09:30:00.000Z', actor: 'ann' },
        ...{ action: 'pools.set', targetId: '2a1c9a55-6f7b-5d1e-8a50-1f3e5d7c9b20', targetName: 'openai' },
        ...{ before: {}, after: { concurrency: 40 } },
      },
    ],
    next: null,
  },
  Model: model,
  ModelPage: { object: 'list', data: [model] },
  OpenAiError: {
    error: {
      message: 'messages[0].content must be a string or an array of text parts.',
      ...{ type: 'invalid_request_error', param: 'messages[0].content', code: 'invalid_request' },
    },
  },
  PostInput: post,
  PostPatch: { title: 'Hello again', tags: ['news', 'update'] },
  Post: storedPost,
  PostPage: { data: [storedPost], next: null },
};
