import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Simulator, startSimulator } from '../../../dev/simulator/server.js';
import { type ProviderId, providerIds } from '../../../shared/contract.js';
import { send, type TestRequest, validRequest } from './requests.js';

let simulator: Simulator;
beforeAll(async () => {
  simulator = await startSimulator({ port: 0 });
});
afterAll(() => simulator.close());

type Bend = (request: TestRequest) => TestRequest;
const without =
  (...names: string[]): Bend =>
  (request) => ({
    ...request,
    headers: Object.fromEntries(Object.entries(request.headers).filter(([name]) => !names.includes(name))),
  });
const withHeaders =
  (headers: Record<string, string>): Bend =>
  (request) => ({ ...request, headers: { ...request.headers, ...headers } });

const refused: [ProviderId, string, Bend, status: number, words: string][] = [
  ['openai', 'no key', without('authorization'), 401, "You didn't provide an API key."],
  [
    'openai',
    'Basic credentials',
    withHeaders({ authorization: 'Basic abc' }),
    401,
    "You didn't provide an API key.",
  ],
  [
    'openai',
    'another media type',
    withHeaders({ 'content-type': 'text/plain' }),
    400,
    'unsupported_content_type',
  ],
  [
    'openai',
    'an unknown address',
    (ask) => ({ ...ask, path: '/v1/nothing' }),
    404,
    'Invalid URL (POST /v1/nothing)',
  ],
  ['openai', 'another method', (ask) => ({ ...ask, method: 'GET' }), 405, 'method_not_supported'],
  ['anthropic', 'no key', without('x-api-key'), 401, 'x-api-key header is required'],
  ['anthropic', 'no version', without('anthropic-version'), 400, 'anthropic-version: header is required'],
  ['anthropic', 'another media type', withHeaders({ 'content-type': 'text/plain' }), 400, 'Content-Type'],
  ['anthropic', 'an unknown address', (ask) => ({ ...ask, path: '/v1/messages/x' }), 404, 'not_found_error'],
  [
    'anthropic',
    'an address of OpenAI',
    (ask) => ({ ...ask, path: '/v1/chat/completions' }),
    404,
    'not_found_error',
  ],
  ['anthropic', 'another method', (ask) => ({ ...ask, method: 'GET' }), 405, 'Method Not Allowed'],
  ['bedrock', 'no signature', without('authorization'), 403, 'Missing Authentication Token'],
  ['bedrock', 'a signature without a date', without('x-amz-date'), 403, 'Authorization header requires'],
  [
    'bedrock',
    'half a signature',
    withHeaders({ authorization: 'AWS4-HMAC-SHA256 Credential=x' }),
    403,
    'Authorization header requires',
  ],
  [
    'bedrock',
    'another media type',
    withHeaders({ 'content-type': 'text/plain' }),
    415,
    'Unsupported content type',
  ],
  ['bedrock', 'an unknown address', (ask) => ({ ...ask, path: '/model/sim-echo/talk' }), 404, 'No operation'],
  ['bedrock', 'a malformed address', (ask) => ({ ...ask, path: '/model/%E0/converse' }), 404, 'No operation'],
  ['vertexai', 'no credentials', without('authorization'), 401, 'CREDENTIALS_MISSING'],
  ['vertexai', 'another media type', withHeaders({ 'content-type': 'text/plain' }), 400, 'INVALID_ARGUMENT'],
  [
    'vertexai',
    'an unknown address',
    (ask) => ({ ...ask, path: '/v1beta1/projects/p' }),
    404,
    'Error 404 (Not Found)',
  ],
  [
    'vertexai',
    'a stream without alt=sse',
    (ask) => ({
      ...ask,
      path: ask.path.replace(':generateContent', ':streamGenerateContent'),
    }),
    400,
    '?alt=sse',
  ],
];

describe('a head', () => {
  it.each(refused)('%s refuses %s', async (provider, _what, bend, status, words) => {
    const response = await send(simulator.url, bend(validRequest(provider)));
    expect(await response.text()).toContain(words);
    expect(response.status).toBe(status);
    expect(response.headers.get('x-simulator')).toBe('quillgate');
  });

  it.each([
    ['anthropic', { authorization: 'Bearer key' }, 'x-api-key'],
    ['bedrock', { authorization: 'Bearer key' }, 'x-amz-date'],
    ['vertexai', { 'x-goog-api-key': 'key' }, 'authorization'],
  ] as const)('%s accepts %o as well', async (provider, headers, instead) => {
    const request = withHeaders(headers)(without(instead)(validRequest(provider)));
    const response = await send(simulator.url, request);
    expect(response.status).toBe(200);
    await response.text();
  });

  it('is remembered without its credentials', async () => {
    const response = await send(simulator.url, without('authorization')(validRequest('openai')));
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
