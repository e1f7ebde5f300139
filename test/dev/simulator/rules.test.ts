import { afterAll, describe, expect, it } from 'vitest';
import { startSimulator } from '../../../dev/simulator/server.js';
import { type ProviderId, providerIds } from '../../../shared/contracts/contract.js';
import { call, result, talk } from '../../support/apis.js';
import { city, everything, requestOf, send, type TestRequest, type Wire, wires } from './requests.js';
import { broken, ownRules, refusals, schemas } from './rules.js';

const simulator = await startSimulator({ port: 0 });
afterAll(() => simulator.close());

const errorShapes: Record<Wire, object> = {
  responses: { error: { type: 'invalid_request_error', message: expect.any(String) } },
  openai: { error: { type: 'invalid_request_error', message: expect.any(String) } },
  anthropic: { type: 'error', error: { type: 'invalid_request_error' }, request_id: expect.any(String) },
  bedrock: { message: expect.any(String) },
  vertexai: { error: { code: 400, status: 'INVALID_ARGUMENT', message: expect.any(String) } },
};

const providerOf = (wire: Wire): ProviderId => (wire === 'responses' ? 'openai' : wire);

/** Expects the provider's 400 that begins with a place, or has these words; without them, a reply. */
async function expectAnswer(wire: Wire, request: TestRequest, words?: string): Promise<void> {
  const response = await send(simulator.url, request);
  const text = await response.text();
  if (words === undefined) {
    expect([response.status, text]).toEqual([200, text]);
    return expect(text.includes('"status":"completed"')).toBe(wire === 'responses');
  }
  expect(text.replaceAll('\\"', '"')).toContain(words);
  expect(response.status).toBe(400);
  expect(JSON.parse(text)).toMatchObject(errorShapes[wire]);
  if (wire === 'bedrock')
    expect(response.headers.get('x-amzn-errortype')).toMatch(/^(Validation|Serialization)Exception$/);
  expect(simulator.calls.list().at(-1)).toMatchObject({
    ...{ provider: providerOf(wire), status: 400, turns: undefined },
  });
}

const bend = (provider: ProviderId, change: object): TestRequest => {
  const request = requestOf(provider);
  return { ...request, body: { ...request.body, ...change } };
};

describe('a request that breaks a rule -> is refused at its place by each provider that has it', () => {
  const [, ...rows] = refusals
    .trim()
    .split('\n')
    .map((row) => row.split('|').map((cell) => cell.trim()));

  it('in a table that has a row for each rule', () => {
    expect(rows.map(([rule]) => rule)).toEqual(Object.keys(broken));
  });

  it.each(rows)('it %s', async (rule = '', ...words) => {
    for (const [index, wire] of wires.entries()) {
      const place = words[index] || undefined;
      const named = wire === 'responses' && place ? `"param":"${place}"` : place;
      await expectAnswer(wire, requestOf(wire, broken[rule]), named);
    }
  });

  it.each(schemas)('the schema of its format is not %j', async (format, claude, openai) => {
    for (const provider of providerIds) {
      const expected = provider === 'openai' ? openai : provider === 'vertexai' ? undefined : claude;
      await expectAnswer(provider, requestOf(provider, { format }), expected && `expected ${expected}`);
    }
  });

  describe.each(providerIds)('%s', (provider) => {
    it.each(ownRules[provider])('refuses %j', (change, words) =>
      expectAnswer(provider, bend(provider, change), words),
    );
  });
});

it.each(wires)('a request with everything that %s takes -> is read in our words', async (wire) => {
  const asked = everything(providerOf(wire));
  await expectAnswer(wire, requestOf(wire, asked));
  const { turns, parameters } = simulator.calls.list().at(-1) ?? {};
  expect(turns).toEqual(asked.turns);
  expect(parameters).toMatchObject({
    ...{ tools: asked.tools, toolChoice: asked.choice, reasoningEffort: 'low' },
    format: { type: 'json_schema', schema: city },
  });
  expect(parameters?.parallelToolCalls).toBe(asked.isParallel);
});

it('results that follow one another at openai -> are read as one turn', async () => {
  const ids = ['a', 'b'];
  const turns = talk(
    ids.map((id) => call(id)),
    ids.map((id) => result(id)),
  );
  await expectAnswer('openai', requestOf('openai', { turns }));
  expect(simulator.calls.list().at(-1)?.turns).toEqual(turns);
});

it('openai takes what its interface allows beyond plain texts', async () => {
  const texts = ['Hel', 'lo'].map((text) => ({ type: 'text', text }));
  const messages = [
    { role: 'developer', content: 'Be brief.' },
    { role: 'assistant', content: 'Hi!' },
    { role: 'user', content: texts },
    { role: 'user', content: ' ' },
  ];
  await expectAnswer('openai', bend('openai', { temperature: 1, messages }));
  const { turns } = simulator.calls.list().at(-1) ?? {};
  const said = ['system:Be brief.', 'assistant:Hi!', 'user:Hello', 'user: '];
  expect(turns?.map(({ role, content }) => `${role}:${content}`)).toEqual(said);
});

const unknown: Record<ProviderId, [status: number, words: string]> = {
  openai: [404, 'The model `MODEL` does not exist or you do not have access to it.'],
  anthropic: [404, 'model: MODEL'],
  bedrock: [400, 'The provided model identifier is invalid.'],
  vertexai: [404, 'Publisher Model `projects/p/locations/l/publishers/google/models/MODEL` was not found'],
};

it.each(providerIds)('an unknown model -> is refused by %s', async (provider) => {
  const models = 'gpt-5 sim- sim-status-200 sim-latency-x sim-echo-2 SIM-ECHO sim-echo. sim-say';
  for (const model of models.split(' ')) {
    const response = await send(simulator.url, requestOf(provider, { model }));
    const [status, words] = unknown[provider];
    expect(response.status).toBe(status);
    expect(await response.text()).toContain(words.replace('MODEL', model));
  }
});

/** The changes to a valid request; a header that is undefined is left out. */
interface Bend extends Partial<Pick<TestRequest, 'method' | 'path'>> {
  headers?: Record<string, string | undefined>;
}

function bendHead(provider: ProviderId, { headers, ...changes }: Bend): TestRequest {
  const request = { ...requestOf(provider), ...changes };
  const entries = Object.entries({ ...request.headers, ...headers });
  const kept = entries.filter((entry): entry is [string, string] => entry[1] !== undefined);
  return { ...request, headers: Object.fromEntries(kept) };
}

const anonymous: Bend = { headers: { authorization: undefined } };
const plainText: Bend = { headers: { 'content-type': 'text/plain' } };
const streamOf = requestOf('vertexai').path.replace(':generateContent', ':streamGenerateContent');
const signed = (authorization: string): Bend => ({ headers: { authorization } });

const heads: [ProviderId, Bend, status: number, words: string][] = [
  ['openai', anonymous, 401, "You didn't provide an API key."],
  ['openai', signed('Basic abc'), 401, "You didn't provide an API key."],
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
  ['anthropic', { headers: { 'anthropic-version': '2024-13-01' } }, 400, 'is not a valid version'],
  ['anthropic', plainText, 400, 'Content-Type'],
  ['anthropic', { path: '/v1/messages/x' }, 404, 'not_found_error'],
  ['anthropic', { path: '/v1/chat/completions' }, 404, 'not_found_error'],
  ['anthropic', { method: 'GET' }, 405, 'Method Not Allowed'],
  ['bedrock', anonymous, 403, 'Missing Authentication Token'],
  ['bedrock', { headers: { 'x-amz-date': undefined } }, 403, 'Authorization header requires'],
  ['bedrock', signed('AWS4-HMAC-SHA256 Credential=x'), 403, 'Authorization header requires'],
  ['bedrock', plainText, 415, 'Unsupported content type'],
  ['bedrock', { path: '/model/sim-echo/talk' }, 404, 'No operation'],
  ['bedrock', { path: '/model/%E0/converse' }, 404, 'No operation'],
  ['vertexai', anonymous, 401, 'CREDENTIALS_MISSING'],
  ['vertexai', plainText, 400, 'INVALID_ARGUMENT'],
  ['vertexai', { path: '/v1beta1/projects/p' }, 404, 'Error 404 (Not Found)'],
  ['vertexai', { path: streamOf }, 400, '?alt=sse'],
];

describe('a head', () => {
  it.each(heads)('that %s does not take, %j -> is refused', async (provider, change, status, words) => {
    const response = await send(simulator.url, bendHead(provider, change));
    expect(await response.text()).toContain(words);
    expect(response.status).toBe(status);
    expect(response.headers.get('x-simulator')).toBe('quillgate');
  });

  it.each([
    ['anthropic', { authorization: 'Bearer key', 'x-api-key': undefined }],
    ['anthropic', { 'anthropic-version': '2023-06-01' }],
    ['bedrock', { authorization: 'Bearer key', 'x-amz-date': undefined }],
    ['vertexai', { 'x-goog-api-key': 'key', authorization: undefined }],
  ] as const)('with the other credentials, or an older version, of %s -> is taken', (provider, headers) =>
    expectAnswer(provider, bendHead(provider, { headers })),
  );

  it('-> is remembered without its credentials', async () => {
    await (await send(simulator.url, bendHead('openai', anonymous))).text();
    expect(simulator.calls.list().at(-1)?.facts.hasCredentials).toBe(false);
    expect(JSON.stringify(simulator.calls.list())).not.toContain('Bearer');
  });
});

it.each(providerIds)('a body that is no JSON object -> is refused by %s', async (provider) => {
  const { path, headers } = requestOf(provider);
  for (const body of ['{"model": "sim-echo"', '[]', '']) {
    const response = await fetch(simulator.url + path, { method: 'POST', headers, body });
    expect([response.status, await response.text()]).toEqual([400, expect.stringMatching(/JSON/)]);
  }
});
