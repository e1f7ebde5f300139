import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { startSimulator } from '../../../dev/simulator/server.js';
import type { ProviderId } from '../../../shared/contract.js';
import {
  findUnsupportedParameter,
  ignoredHints,
  type ModelParameters,
} from '../../../shared/protocol/model-parameters.js';
import { supportedParameters } from '../../support/model-parameters.js';
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
} as const satisfies ModelParameters;

const anyParameters: fc.Arbitrary<ModelParameters> = fc.record(
  {
    maxOutputTokens: fc.integer({ min: 200, max: 100_000 }),
    temperature: fc.double({ min: 0, max: 2, noNaN: true }),
    topP: fc.double({ min: 0, max: 1, noNaN: true }),
    stop: fc.array(
      fc.string({ minLength: 20, maxLength: 40, unit: 'binary' }).filter((text) => text.isWellFormed()),
      { minLength: 1, maxLength: 4 },
    ),
    seed: fc.maxSafeInteger(),
    frequencyPenalty: fc.double({ min: -2, max: 2, noNaN: true }),
    presencePenalty: fc.double({ min: -2, max: 2, noNaN: true }),
    reasoningEffort: fc.constantFrom('none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'),
  },
  { requiredKeys: ['maxOutputTokens'] },
);

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

    it('has the reply end before the first text to stop at', async () => {
      const parameters = { stop: ['7', 'never', ' 5'] };
      const reply = await ask(provider, { model: 'sim-stream-20-0', stream, parameters });
      expect(reply).toMatchObject({ text: '1 2 3 4', reason: 'stop' });
    });

    it('takes a reply that ends before it begins, where its caller asked for that', async () => {
      const asked = { model: 'sim-stream-20-0', stream, parameters: { stop: ['1'] } };
      expect(await ask(provider, { ...asked, mayBeBlankAt: ['stop'] })).toMatchObject({
        text: '',
        reason: 'stop',
      });
      await expect(ask(provider, { ...asked, mayBeBlankAt: ['length'] })).rejects.toMatchObject({
        code: 'provider_error',
      });
    });
  });

  it('sends all that its provider can be asked for, unchanged', async () => {
    await fc.assert(
      fc.asyncProperty(anyParameters, fc.boolean(), async (asked, stream) => {
        const parameters = Object.fromEntries(
          Object.entries(asked).filter(([name]) =>
            supportedParameters[id].has(name as keyof ModelParameters),
          ),
        ) as ModelParameters;
        fc.pre(findUnsupportedParameter(id, parameters) === undefined);
        fc.pre(ignoredHints(id, parameters).length === 0);
        const { maxOutputTokens = 0, ...sampling } = parameters;
        await ask(provider, { model: 'sim-echo', stream, maxOutputTokens, parameters: sampling });
        expect(lastCall()?.parameters).toEqual(JSON.parse(JSON.stringify(parameters)));
      }),
      { numRuns: 60 },
    );
  });
});
