import type { IncomingMessage } from 'node:http';
import { afterAll, afterEach, expect, it, vi } from 'vitest';
import { providerSetups } from '../../support/providers.js';
import { ask } from '../../support/replies.js';
import { serve } from '../../support/serve.js';

const requests: Pick<IncomingMessage, 'url' | 'headers'>[] = [];
const server = await serve((request, response) => {
  requests.push({ url: request.url, headers: request.headers });
  request.resume().on('end', () => response.writeHead(500).end());
});

afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});
afterAll(() => server.close());

const strangers = {
  OPENAI_API_KEY: 'stranger',
  OPENAI_ADMIN_KEY: 'stranger',
  OPENAI_ORG_ID: 'stranger',
  OPENAI_PROJECT_ID: 'stranger',
  OPENAI_BASE_URL: 'http://127.0.0.1:9/stranger',
  OPENAI_LOG: 'debug',
  ANTHROPIC_API_KEY: 'stranger',
  ANTHROPIC_AUTH_TOKEN: 'stranger',
  ANTHROPIC_PROFILE: 'stranger',
  ANTHROPIC_BASE_URL: 'http://127.0.0.1:9/stranger',
  ANTHROPIC_LOG: 'debug',
  AWS_ACCESS_KEY_ID: 'stranger',
  AWS_SECRET_ACCESS_KEY: 'stranger',
  AWS_ENDPOINT_URL_BEDROCK_RUNTIME: 'http://127.0.0.1:9/stranger',
  AWS_MAX_ATTEMPTS: '5',
  GOOGLE_CLOUD_PROJECT: 'stranger',
  GOOGLE_CLOUD_LOCATION: 'stranger',
  GOOGLE_GENAI_USE_VERTEXAI: 'false',
  GOOGLE_VERTEX_BASE_URL: 'http://127.0.0.1:9/stranger',
};

it.each(providerSetups)(
  '$name takes its settings over the environment and prints nothing',
  async ({ load }) => {
    for (const [name, value] of Object.entries(strangers)) vi.stubEnv(name, value);
    const prints = (['debug', 'log', 'info', 'warn', 'error'] as const).map((method) =>
      vi.spyOn(console, method),
    );
    const provider = await load(server.url);
    const since = requests.length;

    // Anthropic's SDK warns of this model.
    for (const stream of [false, true])
      await expect(ask(provider, { model: 'claude-sonnet-4-5', stream })).rejects.toThrow('provider_error');
    provider.close();

    const sent = requests.slice(since);
    expect(sent).toHaveLength(2);
    expect(JSON.stringify(sent)).not.toContain('stranger');
    expect(JSON.stringify(sent)).toMatch(/test-(key|id|token)/);
    // Of Vertex AI in a project, where none is named.
    for (const { url } of sent) expect(url).toMatch(/\/locations\/global\/|^(?!.*\/locations\/)/);
    for (const print of prints) expect(print).not.toHaveBeenCalled();
  },
);
