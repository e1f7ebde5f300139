import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ChatReply, type Deployment, startDeployment } from '../support/deployment.js';

let deployment: Deployment;
beforeAll(async () => {
  deployment = await startDeployment({
    variables: {
      WORKER_PROVIDERS: 'openai,anthropic,bedrock',
      OPENAI_MODEL: '',
      ANTHROPIC_MODELS: 'sim-lat*-50,sim-verbatim',
      ANTHROPIC_MODEL: 'sim-stream-2-0',
    },
  });
});
afterAll(() => deployment.stop());

const codeOf = ({ status, body }: ChatReply) => ({ status, code: body.code });

describe('the API', () => {
  it('refuses at once a provider that no worker serves, and serves the others', async () => {
    const { chat } = deployment;
    // The first one may be given the benefit of the doubt.
    await chat({ provider: 'vertexai', headers: { Prefer: 'wait=5' } });
    const reply = await chat({ provider: 'vertexai' });
    expect(codeOf(reply)).toEqual({ status: 500, code: 'provider_unavailable' });
    // And not at the deadline.
    expect(reply.tookMs).toBeLessThan(30_000);
    expect((await chat({ provider: 'bedrock' })).status).toBe(200);
  });

  it('asks for a model when the provider has no default one, whether its pool has told so or not', async () => {
    const { chat } = deployment;
    const replies = [await chat({}), await chat({ model: 'sim-latency-1200' }), await chat({})];
    expect(replies.map(({ status }) => status)).toEqual([400, 200, 400]);
    for (const { body } of [replies[0], replies[2]].flatMap((reply) => reply ?? [])) {
      expect(body).toMatchObject({ code: 'invalid_request', errors: [{ pointer: 'X-LLM-Model' }] });
    }
  });

  it('lets callers name the models that are listed, and the default one', async () => {
    const { chat, simulator } = deployment;
    const since = simulator.calls.lastId;
    const asked = ['sim-echo', 'sim-latency-50', 'sim-stream-2-0', 'sim-latency-51', 'sim-verbatim'];
    const replies = [];
    for (const model of asked) replies.push(await chat({ provider: 'anthropic', model }));
    expect(replies.map(({ status }) => status)).toEqual([400, 200, 200, 400, 200]);
    expect(replies[0]?.body).toMatchObject({ code: 'invalid_request', errors: [{ pointer: 'X-LLM-Model' }] });
    expect(JSON.stringify(replies[3]?.body)).not.toContain('sim-latency-51');
    expect(simulator.calls.list({ since })).toHaveLength(3);
    expect((await chat({ provider: 'bedrock', model: 'sim-latency-51' })).status).toBe(200);
  });
});
