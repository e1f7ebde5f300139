import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { providerIds } from '../../shared/contract.js';
import { type Deployment, startDeployment } from '../support/deployment.js';
import { completionOf } from '../support/openai-requests.js';

let deployment: Deployment;
beforeAll(async () => {
  deployment = await startDeployment({
    variables: { BEDROCK_MAX_OUTPUT_TOKENS: '9' },
  });
});
afterAll(() => deployment.stop());

const callOf = (model: string) => deployment.simulator.calls.list({ model }).at(-1);

describe.each(providerIds)('what is asked of a model of %s', (provider) => {
  it.each([false, true])('arrives there, also a NUL, and ends the reply (stream: %s)', async (stream) => {
    const name = `sim-stream-20-0@stop-${stream}`;
    const { status, text, finish } = await completionOf(deployment, {
      ...{ model: `${provider}/${name}`, stream, stop: ['\u0000', ' 5'], max_completion_tokens: 7 },
    });
    expect({ status, text, finish }).toEqual({ status: 200, text: '1 2 3 4', finish: 'stop' });
    expect(callOf(name)).toMatchObject({
      provider,
      parameters: { stop: ['\u0000', ' 5'], maxOutputTokens: 7 },
    });
  });
});

describe('the limit of the pool', () => {
  it('holds for those who ask for more', async () => {
    const model = 'bedrock/sim-echo@clamped';
    const { status, finish } = await completionOf(deployment, { model, max_tokens: 10_000 });
    expect({ status, finish }).toEqual({ status: 200, finish: 'length' });
    expect(callOf('sim-echo@clamped')?.parameters).toEqual({ maxOutputTokens: 9 });
  });
});

describe('a fallback', () => {
  const failing = (key: string) => `openai/sim-status-500@${key}`;

  it('is asked for the same', async () => {
    const name = 'sim-stream-20-0@fallback';
    const headers = { 'X-LLM-Fallback': `vertexai/${name}` };
    const asked = { model: failing('passed-on'), stop: ' 5', seed: 7 };
    expect(await completionOf(deployment, asked, headers)).toMatchObject({ status: 200, text: '1 2 3 4' });
    expect(callOf(name)).toMatchObject({ provider: 'vertexai', parameters: { stop: [' 5'], seed: 7 } });
  });

  it('is asked without the hints that its provider does not take (finding C1)', async () => {
    const name = 'sim-echo@without';
    const headers = { 'X-LLM-Fallback': `anthropic/${name}` };
    const asked = { model: failing('hints'), seed: 7, temperature: 0.2, max_tokens: 5 };
    const { status, ignored } = await completionOf(deployment, asked, headers);
    expect({ status, ignored }).toEqual({ status: 200, ignored: 'temperature, seed' });
    expect(callOf(name)).toMatchObject({ provider: 'anthropic', parameters: { maxOutputTokens: 5 } });
  });

  it('is asked for the hints that the first provider does not take (finding C1)', async () => {
    const name = 'sim-stream-20-0@with';
    const headers = { 'X-LLM-Fallback': `vertexai/${name}` };
    const asked = { model: 'anthropic/sim-status-500@with', stream: true, seed: 7 };
    const { status, ignored } = await completionOf(deployment, asked, headers);
    expect({ status, ignored }).toEqual({ status: 200, ignored: null });
    expect(callOf(name)).toMatchObject({ provider: 'vertexai', parameters: { seed: 7 } });
  });

  it('is none where its provider cannot do what is asked for', async () => {
    const headers = { 'X-LLM-Fallback': 'anthropic/sim-echo@not-asked' };
    const asked = {
      ...{ model: failing('refused'), response_format: { type: 'json_object' } },
      messages: [{ role: 'user', content: 'As JSON, please.' }],
    };
    const { status } = await completionOf(deployment, asked, headers);
    expect(status).toBe(502);
    expect(callOf('sim-echo@not-asked')).toBeUndefined();
  });
});
