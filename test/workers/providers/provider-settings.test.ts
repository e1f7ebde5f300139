import { json } from 'node:stream/consumers';
import { expect, it, onTestFinished, vi } from 'vitest';
import { startSimulator } from '../../../dev/simulator/server.js';
import { parseConfig } from '../../../shared/config/config.js';
import { poolConfig } from '../../../shared/config/pool-config.js';
import { type ProviderId, providerIds } from '../../../shared/contracts/contract.js';
import type { Turn } from '../../../shared/conversation.js';
import { wireOf } from '../../../workers/providers/openai/openai.js';
import { openProvider } from '../../../workers/providers/provider-settings.js';
import { patienceMs } from '../../support/patience.js';
import { serve } from '../../support/serve.js';

const hello: Turn = { role: 'user', content: 'Hello!' };

it.each(providerIds)('lets the simulator play %s, which has no credentials', async (id) => {
  const simulator = await startSimulator({ port: 0 });
  onTestFinished(() => simulator.close());
  expect(await say([hello], id, simulator.url)).toContain(`Simulated ${id} reply`);
});

it.each([
  [{}, '/v1/responses'],
  [{ OPENAI_WIRE: 'chat' }, '/v1/chat/completions'],
])('asks the simulator as OpenAI itself is asked, with %j: %s', async (variables, path) => {
  const simulator = await startSimulator({ port: 0 });
  onTestFinished(() => simulator.close());
  await say([hello], 'openai', simulator.url, variables);
  expect(simulator.calls.list().map(({ facts }) => facts.path)).toEqual([path]);
});

it('leaves a provider that has credentials alone', async () => {
  const [simulator, provider] = await Promise.all([startSimulator({ port: 0 }), startSimulator({ port: 0 })]);
  onTestFinished(async () => void (await Promise.all([simulator.close(), provider.close()])));
  const real = {
    OPENAI_API_KEY: 'a-real-key',
    OPENAI_BASE_URL: `${provider.url}/v1`,
    OPENAI_MODEL: 'sim-verbatim',
  };
  expect(await say([hello], 'openai', simulator.url, real)).toContain('"Hello!"');
  expect(simulator.calls.list()).toEqual([]);
});

it.each(providerIds)('sends no credential that the machine may have for %s to the simulator', async (id) => {
  // Bedrock's chain knows these; without a region they do not make it real.
  vi.stubEnv('AWS_BEARER_TOKEN_BEDROCK', 'a-real-token');
  vi.stubEnv('AWS_ACCESS_KEY_ID', 'a-real-key');
  vi.stubEnv('ANTHROPIC_AUTH_TOKEN', 'a-real-token');
  onTestFinished(() => void vi.unstubAllEnvs());
  const heads: string[] = [];
  const server = await serve(({ rawHeaders }, response) => {
    heads.push(rawHeaders.join('\n'));
    response.writeHead(400).end();
  });
  onTestFinished(() => server.close());
  await expect(say([hello], id, server.url)).rejects.toThrow();
  expect(heads).toHaveLength(1);
  expect(heads[0]).toContain('simulator');
  expect(heads[0]).not.toContain('a-real-');
});

const brief: Turn = { role: 'system', content: 'Be brief.' };
it.each([
  ['not set', 'the simulator', undefined, { type: 'ephemeral' }],
  ['auto', 'the simulator', 'auto', { type: 'ephemeral' }],
  ['1h', 'the simulator', '1h', { type: 'ephemeral', ttl: '1h' }],
  ['off', 'the simulator', 'off', undefined],
  ['not set', 'a server of others', undefined, undefined],
  ['auto', 'a server of others', 'auto', { type: 'ephemeral' }],
])(
  'ANTHROPIC_PROMPT_CACHE %s -> %s is asked to cache or not, and only the simulator has later system texts in their places',
  async (_, asked, setting, cacheControl) => {
    const bodies: { cache_control?: object; messages: { role: string }[] }[] = [];
    const server = await serve(async (request, response) => {
      bodies.push((await json(request)) as (typeof bodies)[number]);
      response.writeHead(400).end();
    });
    onTestFinished(() => server.close());
    const isForeign = asked === 'a server of others';
    const own = { ANTHROPIC_API_KEY: 'k', ANTHROPIC_BASE_URL: server.url, ANTHROPIC_MODEL: 'm' };
    const variables = { ANTHROPIC_PROMPT_CACHE: setting, ...(isForeign && own) };
    const turns: Turn[] = [hello, { role: 'assistant', content: 'Hi!' }, hello, brief];
    await expect(say(turns, 'anthropic', server.url, variables)).rejects.toThrow();
    expect(bodies).toHaveLength(1);
    expect(bodies[0]?.cache_control).toEqual(cacheControl);
    const roles = ['user', 'assistant', 'user', ...(isForeign ? [] : ['system'])];
    expect(bodies[0]?.messages.map(({ role }) => role)).toEqual(roles);
  },
);

it.each<[wire: 'auto' | 'responses' | 'chat' | undefined, baseUrl: string | undefined, gives: string]>([
  ['auto', undefined, 'responses'],
  [undefined, undefined, 'responses'],
  ['auto', 'https://api.openai.com/v1', 'responses'],
  ['auto', 'https://eu.api.openai.com/v1/', 'responses'],
  ['auto', 'https://name.openai.azure.com/openai/v1/', 'responses'],
  ['auto', 'https://name.services.ai.azure.com/openai/v1', 'responses'],
  ['auto', 'https://name.cognitiveservices.azure.com/openai/v1', 'responses'],
  ['auto', 'https://name.openai.azure.com/openai/deployments/x', 'chat'],
  ['auto', 'https://name.openai.azure.com/openai/v12', 'chat'],
  ['auto', 'https://api.openai.com.example.org/v1', 'chat'],
  ['auto', 'https://notapi.openai.com/v1', 'chat'],
  ['auto', 'http://127.0.0.1:8000/v1', 'chat'],
  ['chat', undefined, 'chat'],
  ['responses', 'http://127.0.0.1:8000/v1', 'responses'],
])('speaks OpenAI’s API by the variable, or else by the address: %s at %s -> %s', (wire, baseUrl, gives) => {
  expect(wireOf({ wire, baseUrl })).toBe(gives);
});

/** A provider's reply from a simulator, as JSON, with the credentials of these variables alone. */
async function say(turns: Turn[], id: ProviderId, simulatorUrl: string, more = {}): Promise<string> {
  const variables = { SIMULATOR_URL: `${simulatorUrl}/`, REDIS_URL: 'redis://localhost', ...more };
  const config = parseConfig(variables, 'worker');
  const provider = await openProvider(id, config);
  onTestFinished(() => provider.close());
  const { model = '' } = poolConfig(config, id);
  const signal = AbortSignal.timeout(patienceMs);
  return JSON.stringify(await provider.run({ turns, model, signal }));
}
