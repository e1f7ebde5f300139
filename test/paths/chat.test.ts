import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { providerIds } from '../../shared/contract.js';
import { type Deployment, startDeployment } from '../support/deployment.js';

let deployment: Deployment;
beforeAll(async () => {
  deployment = await startDeployment({});
});
afterAll(() => deployment.stop());

describe.each(providerIds)('POST /chat with X-LLM: %s', (provider) => {
  it('answers with the reply in exactly one field and the facts in headers', async () => {
    const { status, headers, body } = await deployment.chat({ provider });
    expect(status).toBe(200);
    expect(Object.keys(body)).toEqual(['response']);
    expect(body.response).toMatch(new RegExp(`Simulated ${provider} reply .* Hello`));
    expect(headers.get('content-type')).toMatch(/^application\/json/);
    expect(headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
    expect(headers.get('x-llm-provider')).toBe(provider);
    expect(headers.get('x-llm-model')).toBe('sim-echo');
    expect(headers.get('x-llm-finish-reason')).toBe('stop');
    expect(Number(headers.get('x-llm-input-tokens'))).toBeGreaterThan(0);
    expect(Number(headers.get('x-llm-output-tokens'))).toBeGreaterThan(0);
    expect(headers.get('server-timing')).toMatch(/^queue;dur=\d+, provider;dur=\d+$/);
  });

  it('carries a text of half a megabyte there and back, byte for byte', async () => {
    const content = '€ß漢🦉 '.repeat(25_000);
    const { status, body } = await deployment.chat({
      provider,
      model: 'sim-verbatim',
      messages: [{ content }],
    });
    expect(status).toBe(200);
    expect(body.response).toBe(content);
  });
});

describe('POST /chat', () => {
  it('keeps a hundred conversations at once apart', async () => {
    const asked = Array.from({ length: 100 }, (_, index) => `ChatCommand ${index}`);
    const replies = await Promise.all(
      asked.map((content) => deployment.chat({ model: 'sim-verbatim', messages: [{ content }] })),
    );
    expect(replies.map(({ body }) => body.response)).toEqual(asked);
  });
});
