import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { providerIds } from '../../shared/contract.js';
import { type Deployment, type StartedApi, startDeployment } from '../support/deployment.js';
import { completionOf } from '../support/openai-requests.js';
import { profiles } from '../support/profiles.js';
import { describeChats } from './chats.js';

let deployment: Deployment;
let other: StartedApi;
beforeAll(async () => {
  deployment = await startDeployment({ variables: profiles.plain });
  other = await deployment.startApi();
});
afterAll(() => deployment?.stop());

describeChats(() => ({ deployment, other }));

const callOf = (model: string) => deployment.simulator.calls.list({ model }).at(-1);

describe.each(providerIds)('what is asked of a model of %s', (provider) => {
  it.each([false, true])('holds a NUL → it arrives, and ends the reply (stream: %s)', async (stream) => {
    const model = `sim-stream-20-0@stop-${stream}`;
    const stop = ['\u0000', ' 5'];
    const asked = { model: `${provider}/${model}`, stream, stop, max_completion_tokens: 7 };
    const { status, text, finish } = await completionOf(deployment, asked);
    expect({ status, text, finish }).toEqual({ status: 200, text: '1 2 3 4', finish: 'stop' });
    expect(callOf(model)).toMatchObject({ provider, parameters: { stop, maxOutputTokens: 7 } });
  });
});

describe('a fallback', () => {
  it.each([
    {
      ...{ given: 'takes all hints', first: 'openai', next: 'vertexai', asked: { stop: ' 5', seed: 7 } },
      ...{ reply: { text: '1 2 3 4', ignored: null }, parameters: { stop: [' 5'], seed: 7 } },
    },
    {
      ...{ given: 'takes less than the first provider', first: 'openai', next: 'anthropic' },
      asked: { seed: 7, temperature: 0.2, max_tokens: 5 },
      ...{ reply: { ignored: 'temperature, seed' }, parameters: { maxOutputTokens: 5 } },
    },
    {
      ...{ given: 'takes more than the first provider', first: 'anthropic', next: 'vertexai' },
      ...{ asked: { stream: true, seed: 7 }, reply: { ignored: null }, parameters: { seed: 7 } },
    },
  ])('$given → it is asked for what it takes', async ({ given, first, next, asked, reply, parameters }) => {
    const model = `sim-stream-20-0@${given}`.replaceAll(' ', '-');
    const completion = { model: `${first}/sim-status-500@hints`, ...asked };
    const answered = await completionOf(deployment, completion, { 'X-LLM-Fallback': `${next}/${model}` });
    expect(answered).toMatchObject({ status: 200, ...reply });
    expect(callOf(model)).toMatchObject({ provider: next, parameters });
  });

  it('cannot do what is asked for → it is not asked', async () => {
    const headers = { 'X-LLM-Fallback': 'anthropic/sim-echo@not-asked' };
    const asked = {
      ...{ model: 'openai/sim-status-500@refused', response_format: { type: 'json_object' } },
      messages: [{ role: 'user', content: 'As JSON, please.' }],
    };
    expect((await completionOf(deployment, asked, headers)).status).toBe(502);
    expect(callOf('sim-echo@not-asked')).toBeUndefined();
  });
});
