import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Simulator, startSimulator } from '../../../dev/simulator/server.js';
import { type ProviderId, providerIds } from '../../../shared/contract.js';
import { send, validRequest } from './requests.js';
import { type Violation, violations } from './violations.js';

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
  violations[provider].map((violation): [ProviderId, ...Violation] => [provider, ...violation]),
);

describe('a provider', () => {
  it.each(cases)('%s refuses %j: %s', async (provider, change, words) => {
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
