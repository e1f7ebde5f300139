import { describe, expect, it } from 'vitest';
import { banner } from '../../dev/banner.js';
import { type Environment, parseConfig } from '../../shared/config/config.js';
import { providerIds } from '../../shared/contracts/contract.js';

const file = '.data/kept';

/** The text of a start in which everything but OpenAI is simulated. */
const textOf = (environment: Environment, { isVerbose = false } = {}) =>
  banner(
    {
      ...{
        config: parseConfig(environment, 'start'),
        workerPorts: [3001, 15000],
        simulatorUrl: 'http://127.0.0.1:3002',
      },
      ...{ simulated: providerIds.filter((id) => id !== 'openai'), logDir: '.data/logs' },
      credentials: { username: 'demo', password: 'the-chat-password', file },
      admin: { username: 'admin', password: 'the-console-password', file },
      tokens: { blog: { token: 'the-blog-token', file }, chat: { token: 'the-chat-token', file } },
    },
    { isVerbose },
  );

describe('banner', () => {
  it('fits on a screen, with address, names and passwords', () => {
    const text = textOf({});
    expect(text.trimEnd().split('\n').length).toBeLessThanOrEqual(20);
    const shown = ['http://localhost:3000/', 'demo', 'the-chat-password', 'admin', 'the-console-password'];
    for (const words of shown) expect(text).toContain(words);
    expect(text).toContain('openai: real; anthropic, bedrock, vertexai: simulated');
    expect(text).toContain("  curl -u demo:the-chat-password -H 'X-LLM: openai' -H 'X-LLM-Model: <model>'");
    expect(text).toContain('npm start -- --verbose');
  });

  it('has the health page of each worker, when it is verbose', () => {
    const health = 'http://localhost:3001/readyz and http://localhost:15000/readyz';
    expect(textOf({}, { isVerbose: true })).toContain(`workers: ${health}\n`);
  });
});
