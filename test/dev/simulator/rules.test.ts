import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Simulator, startSimulator } from '../../../dev/simulator/server.js';
import { type ProviderId, providerIds } from '../../../shared/contract.js';
import { partViolations } from './part-violations.js';
import { send, type TestRequest, validRequest } from './requests.js';
import { violations } from './violations.js';

let simulator: Simulator;
beforeAll(async () => {
  simulator = await startSimulator({ port: 0 });
});
afterAll(() => simulator.close());

const errorShapes: Record<ProviderId, object> = {
  openai: { error: { type: 'invalid_request_error', message: expect.any(String) } },
  anthropic: { type: 'error', error: { type: 'invalid_request_error' }, request_id: expect.any(String) },
  bedrock: { message: expect.any(String) },
  vertexai: { error: { code: 400, status: 'INVALID_ARGUMENT', message: expect.any(String) } },
};

const cases = providerIds.flatMap((provider) =>
  [...violations[provider], ...partViolations[provider]].map(([change, words]) => ({
    provider,
    change,
    words,
  })),
);

describe('a provider', () => {
  it.each(cases)('$provider refuses: $words', async ({ provider, change, words }) => {
    const request = validRequest(provider);
    const response = await send(simulator.url, { ...request, body: { ...request.body, ...change } });
    const text = await response.text();
    expect(text.replaceAll('\\"', '"')).toContain(words);
    expect(response.status).toBe(400);
    expect(JSON.parse(text)).toMatchObject(errorShapes[provider]);
    if (provider === 'bedrock') {
      expect(response.headers.get('x-amzn-errortype')).toMatch(/^(Validation|Serialization)Exception$/);
    }
    expect(simulator.calls.list().at(-1)).toMatchObject({ provider, status: 400, turns: undefined });
  });

  it('openai accepts what its interface allows beyond plain texts', async () => {
    const request = validRequest('openai');
    const messages = [
      { role: 'developer', content: 'Be brief.' },
      { role: 'assistant', content: 'Hi!' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Hel' },
          { type: 'text', text: 'lo' },
        ],
      },
      { role: 'user', content: ' ' },
    ];
    const response = await send(simulator.url, {
      ...request,
      body: { ...request.body, temperature: 1, messages },
    });
    expect(response.status).toBe(200);
    await response.text();
    expect(
      simulator.calls
        .list()
        .at(-1)
        ?.turns?.map(({ role, content }) => `${role}:${content}`),
    ).toEqual(['system:Be brief.', 'assistant:Hi!', 'user:Hello', 'user: ']);
  });
});

describe('an unknown model', () => {
  const unknown: Record<ProviderId, [status: number, words: string]> = {
    openai: [404, 'The model `MODEL` does not exist or you do not have access to it.'],
    anthropic: [404, 'model: MODEL'],
    bedrock: [400, 'The provided model identifier is invalid.'],
    vertexai: [404, 'Publisher Model `projects/p/locations/l/publishers/google/models/MODEL` was not found'],
  };

  it.each(providerIds)('is refused by %s', async (provider) => {
    for (const model of ['gpt-5', 'sim-', 'sim-status-200', 'sim-latency-x', 'sim-echo-2', 'SIM-ECHO']) {
      const response = await send(simulator.url, validRequest(provider, { model }));
      const [status, words] = unknown[provider];
      expect(response.status).toBe(status);
      expect(await response.text()).toContain(words.replace('MODEL', model));
    }
  });
});

/** What is changed of a valid request; a header that is undefined is left out. */
interface Bend extends Partial<Pick<TestRequest, 'method' | 'path'>> {
  headers?: Record<string, string | undefined>;
}

function bend(provider: ProviderId, { headers, ...changes }: Bend): TestRequest {
  const request = { ...validRequest(provider), ...changes };
  const entries = Object.entries({ ...request.headers, ...headers });
  const kept = entries.filter((entry): entry is [string, string] => entry[1] !== undefined);
  return { ...request, headers: Object.fromEntries(kept) };
}

const anonymous: Bend = { headers: { authorization: undefined } };
const plainText: Bend = { headers: { 'content-type': 'text/plain' } };
const streamOf = validRequest('vertexai').path.replace(':generateContent', ':streamGenerateContent');

const refused: [ProviderId, Bend, status: number, words: string][] = [
  ['openai', anonymous, 401, "You didn't provide an API key."],
  ['openai', { headers: { authorization: 'Basic abc' } }, 401, "You didn't provide an API key."],
  ['openai', plainText, 400, 'unsupported_content_type'],
  ['openai', { path: '/v1/nothing' }, 404, 'Invalid URL (POST /v1/nothing)'],
  ['openai', { method: 'GET' }, 405, 'method_not_supported'],
  ['anthropic', { headers: { 'x-api-key': undefined } }, 401, 'x-api-key header is required'],
  [
    'anthropic',
    { headers: { 'anthropic-version': undefined } },
    400,
    'anthropic-version: header is required',
  ],
  ['anthropic', plainText, 400, 'Content-Type'],
  ['anthropic', { path: '/v1/messages/x' }, 404, 'not_found_error'],
  ['anthropic', { path: '/v1/chat/completions' }, 404, 'not_found_error'],
  ['anthropic', { method: 'GET' }, 405, 'Method Not Allowed'],
  ['bedrock', anonymous, 403, 'Missing Authentication Token'],
  ['bedrock', { headers: { 'x-amz-date': undefined } }, 403, 'Authorization header requires'],
  [
    'bedrock',
    { headers: { authorization: 'AWS4-HMAC-SHA256 Credential=x' } },
    403,
    'Authorization header requ',
  ],
  ['bedrock', plainText, 415, 'Unsupported content type'],
  ['bedrock', { path: '/model/sim-echo/talk' }, 404, 'No operation'],
  ['bedrock', { path: '/model/%E0/converse' }, 404, 'No operation'],
  ['vertexai', anonymous, 401, 'CREDENTIALS_MISSING'],
  ['vertexai', plainText, 400, 'INVALID_ARGUMENT'],
  ['vertexai', { path: '/v1beta1/projects/p' }, 404, 'Error 404 (Not Found)'],
  ['vertexai', { path: streamOf }, 400, '?alt=sse'],
];

describe('a head', () => {
  it.each(refused)('%s refuses %j', async (provider, change, status, words) => {
    const response = await send(simulator.url, bend(provider, change));
    expect(await response.text()).toContain(words);
    expect(response.status).toBe(status);
    expect(response.headers.get('x-simulator')).toBe('quillgate');
  });

  it.each([
    ['anthropic', { authorization: 'Bearer key', 'x-api-key': undefined }],
    ['bedrock', { authorization: 'Bearer key', 'x-amz-date': undefined }],
    ['vertexai', { 'x-goog-api-key': 'key', authorization: undefined }],
  ] as const)('%s accepts %o as well', async (provider, headers) => {
    const response = await send(simulator.url, bend(provider, { headers }));
    expect(response.status).toBe(200);
    await response.text();
  });

  it('is remembered without its credentials', async () => {
    const response = await send(simulator.url, bend('openai', anonymous));
    await response.text();
    const call = simulator.calls.list().at(-1);
    expect(call?.facts.hasCredentials).toBe(false);
    expect(JSON.stringify(simulator.calls.list())).not.toContain('Bearer');
  });
});

describe.each(providerIds)('a body that is no JSON object, sent to %s,', (provider) => {
  it.each(['{"model": "sim-echo"', '[]', ''])('is refused: %s', async (body) => {
    const { path, headers } = validRequest(provider);
    const response = await fetch(simulator.url + path, { method: 'POST', headers, body });
    expect(response.status).toBe(400);
    expect(await response.text()).toMatch(/JSON/);
  });
});
