import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Deployment, startDeployment } from '../support/deployment.js';

let deployment: Deployment;

/** As in compose: each worker sees the credentials of its own provider alone, and the names of all that have some. */
const worker = (id: string, variables: Record<string, string> = {}) =>
  deployment.startWorker({
    WORKER_PROVIDERS: id,
    SIMULATOR_URL: deployment.simulator.url,
    REAL_PROVIDERS: 'openai,',
    ...variables,
  });

describe('a simulator beside a provider with credentials', () => {
  beforeAll(async () => {
    deployment = await startDeployment({
      workers: 0,
      variables: { CHAT_TIMEOUT_MS: '4500' },
    });
  });
  afterAll(() => deployment.stop());

  it('plays nobody: requests to the others are refused instead of being answered with invented text', async () => {
    await Promise.all([worker('openai'), worker('anthropic', { ANTHROPIC_API_KEY: '' })]);
    expect((await deployment.chat({ provider: 'openai' })).status).toBe(200);
    // An API that has just started waits for workers it may not have heard of yet.
    await deployment.chat({ provider: 'anthropic' });
    const refused = await deployment.chat({ provider: 'anthropic' });
    expect(refused).toMatchObject({ status: 500, body: { code: 'provider_unavailable' } });
    expect(deployment.simulator.calls.list().map(({ facts }) => facts.provider)).toEqual(['openai']);
  });

  it('leaves a worker that has nobody to call ready, and its log says why it does nothing', async () => {
    const idle = await worker('vertexai', { GOOGLE_API_KEY: '', GOOGLE_CLOUD_PROJECT: '' });
    expect((await fetch(`http://127.0.0.1:${idle.port}/readyz`)).status).toBe(200);
    expect(deployment.logs()).toContain('no pool: no credentials; no provider is simulated beside real ones');
  });
});
