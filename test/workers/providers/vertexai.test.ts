import { describe, expect, it, onTestFinished } from 'vitest';
import { providerSetups } from '../../support/providers.js';
import { ask } from '../../support/replies.js';
import { serve } from '../../support/serve.js';

const [setup] = providerSetups.filter(({ id }) => id === 'vertexai');

/** The answer of a model that has used up its tokens by thinking. */
const thoughts = {
  candidates: [{ content: { role: 'model' }, finishReason: 'MAX_TOKENS' }],
  usageMetadata: { promptTokenCount: 7, thoughtsTokenCount: 90, totalTokenCount: 97 },
};

describe.each([false, true])('an answer of thoughts alone (stream: %s)', (stream) => {
  const read = async (mayBeBlankAt: 'length'[]) => {
    const said = JSON.stringify(thoughts);
    const server = await serve((request, response) => {
      response.setHeader('Content-Type', stream ? 'text/event-stream' : 'application/json');
      request.resume().on('end', () => response.end(stream ? `data: ${said}\r\n\r\n` : said));
    });
    onTestFinished(() => server.close());
    const provider = await setup?.load(server.url);
    if (provider === undefined) throw new Error('there is no such setup');
    onTestFinished(() => provider.close());
    return ask(provider, { model: 'gemini', stream, mayBeBlankAt });
  };
  const usage = { inputTokens: 7, outputTokens: 90 };

  it('counts them as output, also where a reply without text is a failure', async () => {
    expect(await read(['length'])).toMatchObject({ text: '', reason: 'length', usage });
    await expect(read([])).rejects.toMatchObject({ code: 'provider_error', facts: { usage } });
  });
});
