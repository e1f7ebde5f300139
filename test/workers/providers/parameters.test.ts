import { afterAll, describe, expect, it } from 'vitest';
import { startSimulator } from '../../../dev/simulator/server.js';
import type { ProviderId } from '../../../shared/contract.js';
import { type ModelParameters } from '../../../shared/protocol/model-parameters.js';
import { providerSetups, replyModes } from '../../support/providers.js';
import { ask } from '../../support/replies.js';

const simulator = await startSimulator({ port: 0 });
afterAll(() => simulator.close());

/** All of them, in the provider's words, as far as it has any. */
const onTheWire: Record<ProviderId, object> = {
  openai: {
    max_completion_tokens: 77,
    temperature: 0,
    top_p: 0.25,
    stop: ['\u0000', '🎉\n'],
    seed: -7,
    frequency_penalty: -2,
    presence_penalty: 1.5,
    reasoning_effort: 'minimal',
    verbosity: 'low',
  },
  anthropic: { max_tokens: 77, stop_sequences: ['\u0000', '🎉\n'] },
  bedrock: {
    inferenceConfig: { maxTokens: 77, temperature: 0, topP: 0.25, stopSequences: ['\u0000', '🎉\n'] },
  },
  vertexai: {
    generationConfig: {
      maxOutputTokens: 77,
      temperature: 0,
      topP: 0.25,
      stopSequences: ['\u0000', '🎉\n'],
      seed: -7,
      frequencyPenalty: -2,
      presencePenalty: 1.5,
      thinkingConfig: { thinkingLevel: 'MINIMAL' },
    },
  },
};
/** The parts of a call beside them. */
const others = ['model', 'messages', 'contents', 'stream', 'stream_options'];

const all = {
  temperature: 0,
  topP: 0.25,
  stop: ['\u0000', '🎉\n'],
  seed: -7,
  frequencyPenalty: -2,
  presencePenalty: 1.5,
  reasoningEffort: 'minimal',
  verbosity: 'low',
} as const satisfies ModelParameters;

describe.each(providerSetups)('$name', async ({ id, load }) => {
  const provider = await load(simulator.url);
  afterAll(() => provider.close());
  const lastCall = () => simulator.calls.list().at(-1);

  describe.each(replyModes)('$mode', ({ stream }) => {
    it('sends what its provider can do in the words of its provider, and nothing else', async () => {
      const parameters = { ...all, stop: [...all.stop] };
      await ask(provider, { model: 'sim-echo', stream, maxOutputTokens: 77, parameters });
      const body = Object.entries(lastCall()?.body as object).filter(([name]) => !others.includes(name));
      expect(Object.fromEntries(body)).toEqual(onTheWire[id]);
    });
  });
});
