import { expect, it } from 'vitest';
import { startPlaying } from '../../support/playing-provider.js';
import { replyModes } from '../../support/providers.js';

const { play } = await startPlaying();

/** The answer of a model that has used up its tokens by thinking. */
const thoughts = {
  candidates: [{ content: { role: 'model' }, finishReason: 'MAX_TOKENS' }],
  usageMetadata: { promptTokenCount: 7, thoughtsTokenCount: 90, totalTokenCount: 97 },
};
const usage = { inputTokens: 7, outputTokens: 90 };

it.each(replyModes)(
  'thoughts alone -> count as output, also where that is a failure: $mode',
  async ({ stream }) => {
    const read = (mayBeBlankAt: 'length'[]) =>
      play(
        'vertexai',
        { whole: JSON.stringify(thoughts), events: [['', thoughts]] },
        { stream, mayBeBlankAt },
      );
    expect(await read(['length'])).toMatchObject({ text: '', reason: 'length', usage });
    await expect(read([])).rejects.toMatchObject({ code: 'provider_error', facts: { usage } });
  },
);
