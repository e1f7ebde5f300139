import { describe, expect, it } from 'vitest';
import { parseCompletionBody } from '../../../api/openai/completion-body.js';
import { ignoredFieldsOf, toCompletionRequest } from '../../../api/openai/completion-request.js';
import { RequestImages } from '../../../api/openai/images.js';
import { type ProviderId, providerIds } from '../../../shared/contract.js';
import type { Failure } from '../../../shared/failures.js';

const messages = [{ role: 'user', content: 'Hello' }];

const read = (fields: object, provider: ProviderId = 'openai') =>
  toCompletionRequest(
    parseCompletionBody({ model: `${provider}/m`, messages, ...fields }, 1000),
    undefined,
    new RequestImages(1000),
  );

/** The first error, as `pointer detail`. */
function refusal(fields: object, provider: ProviderId = 'openai'): string {
  try {
    read(fields, provider);
  } catch (error) {
    const { code, facts } = error as Failure;
    const [{ pointer, detail } = { pointer: '', detail: '' }] = facts.errors ?? [];
    return `${code} ${pointer} ${detail}`.trim();
  }
  return 'taken';
}

/** Values that change nothing. */
const neutral: [string, unknown][] = [
  ['temperature', 1],
  ['top_p', 1],
  ['n', 1],
  ['frequency_penalty', 0],
  ['presence_penalty', 0],
  ['logprobs', false],
  ['top_logprobs', 0],
  ['logit_bias', {}],
  ['store', false],
  ['stop', []],
  ['tools', []],
  ['functions', []],
  ['tool_choice', 'none'],
  ['tool_choice', 'auto'],
  ['function_call', 'none'],
  ['parallel_tool_calls', true],
  ['parallel_tool_calls', false],
  ['response_format', { type: 'text' }],
  ['modalities', ['text']],
  ['service_tier', 'auto'],
  ['service_tier', 'default'],
  ['stream', false],
];
const nullable = [
  ...['temperature', 'top_p', 'n', 'frequency_penalty', 'presence_penalty', 'logprobs', 'top_logprobs'],
  ...['logit_bias', 'store', 'stop', 'tools', 'functions', 'tool_choice', 'function_call', 'seed', 'audio'],
  ...['parallel_tool_calls', 'response_format', 'modalities', 'service_tier', 'stream', 'stream_options'],
  ...['max_tokens', 'max_completion_tokens', 'reasoning_effort', 'prediction', 'web_search_options'],
];

describe.each(providerIds)('for %s', (provider) => {
  it.each(neutral)('%s may be %j', (field, value) => {
    expect(refusal({ [field]: value }, provider)).toBe('taken');
  });

  it.each(nullable)('%s may be null', (field) => {
    expect(read({ [field]: null }, provider).parameters).toBeUndefined();
  });

  it.each([
    ['user', 'me'],
    ['metadata', { a: 'b' }],
    ['safety_identifier', 'x'],
    ['prompt_cache_key', 'x'],
  ])('%s is accepted and never read', (field, value) => {
    expect(read({ [field]: value }, provider)).toEqual(read({}, provider));
  });

  it.each([
    [{ max_tokens: 5 }, { maxOutputTokens: 5 }],
    [{ max_completion_tokens: 5 }, { maxOutputTokens: 5 }],
    [{ max_completion_tokens: 5, max_tokens: 5 }, { maxOutputTokens: 5 }],
    [{ max_completion_tokens: null, max_tokens: 5 }, { maxOutputTokens: 5 }],
    [{ max_completion_tokens: 5, max_tokens: null }, { maxOutputTokens: 5 }],
    [{ stop: 'END' }, { stop: ['END'] }],
    [{ stop: ['a', 'b', 'c', 'd'] }, { stop: ['a', 'b', 'c', 'd'] }],
  ])('%j asks the model for %j', (fields, parameters) => {
    expect(read(fields, provider).parameters).toEqual(parameters);
  });
});

describe('a hint that not every provider takes', () => {
  it.each<[object, object, ProviderId[]]>([
    [{ temperature: 0.5 }, { temperature: 0.5 }, ['openai', 'bedrock', 'vertexai']],
    [{ temperature: 1.5 }, { temperature: 1.5 }, ['openai', 'vertexai']],
    [{ top_p: 0.5 }, { topP: 0.5 }, ['openai', 'bedrock', 'vertexai']],
    [{ seed: 7 }, { seed: 7 }, ['openai', 'vertexai']],
    [{ frequency_penalty: 0.5 }, { frequencyPenalty: 0.5 }, ['openai', 'vertexai']],
    [{ presence_penalty: -0.5 }, { presencePenalty: -0.5 }, ['openai', 'vertexai']],
    [{ reasoning_effort: 'low' }, { reasoningEffort: 'low' }, [...providerIds]],
    [{ reasoning_effort: 'minimal' }, { reasoningEffort: 'minimal' }, ['openai', 'vertexai']],
    [{ verbosity: 'low' }, { verbosity: 'low' }, ['openai']],
  ])('such as %j is kept for a fallback, and named where it is ignored', (fields, parameters, able) => {
    for (const provider of providerIds) {
      const { parameters: asked } = read(fields, provider);
      expect(asked, provider).toEqual(parameters);
      expect(ignoredFieldsOf(provider, asked), provider).toEqual(
        able.includes(provider) ? [] : Object.keys(fields),
      );
    }
  });
});

describe('what no provider can do', () => {
  it.each([
    [{ n: 2 }, '/n must be 1: a completion has one choice here'],
    [{ logprobs: true }, '/logprobs must be false: log probabilities are not supported'],
    [{ top_logprobs: 3 }, '/top_logprobs must be 0: log probabilities are not supported'],
    [{ logit_bias: { 'secret of the caller': -100 } }, '/logit_bias must be empty: it is not supported'],
    [{ audio: { voice: 'x', format: 'mp3' } }, '/audio is not supported'],
    [{ modalities: ['text', 'audio'] }, '/modalities must be text alone'],
    [{ modalities: ['audio'] }, '/modalities/0 must be text alone'],
    [{ prediction: { type: 'content', content: 'x' } }, '/prediction is not supported'],
    [{ web_search_options: {} }, '/web_search_options is not supported'],
    [{ functions: [{ name: 'f' }] }, '/functions is not supported: use tools'],
    [{ function_call: 'auto' }, '/function_call is not supported: use tool_choice'],
    [{ store: true }, '/store must be false: nothing is stored for OpenAI'],
    [{ service_tier: 'priority' }, '/service_tier must be auto, default or flex'],
    [
      { messages: [{ role: 'function', content: 'x' }] },
      '/messages/0/role function is not supported: use tool',
    ],
    [
      { messages: [{ role: 'assistant', content: 'x', function_call: { name: 'f', arguments: '' } }] },
      '/messages/0/function_call is not supported: use tool_calls',
    ],
    [
      { messages: [{ role: 'assistant', content: [{ type: 'refusal', refusal: 'x' }] }] },
      '/messages/0/content/0/type refusal parts are not supported',
    ],
    [
      { messages: [{ role: 'user', content: [{ type: 'input_audio' }] }] },
      '/messages/0/content/0/type input_audio parts are not supported',
    ],
    [
      { messages: [{ role: 'user', content: [{ type: 'secret-of-the-caller' }] }] },
      '/messages/0/content/0/type must be text or image_url',
    ],
  ])('such as %j is refused by name', (fields, reason) => {
    for (const provider of providerIds)
      expect(refusal(fields, provider), provider).toBe(`invalid_request ${reason}`);
  });
});

describe('what is wrong for anybody', () => {
  it.each<[object, string]>([
    [{ model: undefined }, '/model is required'],
    [{ model: 5 }, '/model must be a string'],
    [{ messages: undefined }, '/messages is required'],
    [{ messages: 'x' }, '/messages must be an array'],
    [{ messages: ['x'] }, '/messages/0 must be an object'],
    [{ messages: [{ content: 'x' }] }, '/messages/0/role must be system, developer, user, assistant or tool'],
    [
      { messages: [{ role: ['user'], content: 'x' }] },
      '/messages/0/role must be system, developer, user, assistant or tool',
    ],
    [{ messages: [{ role: 'user' }] }, '/messages/0/content is required'],
    [
      { messages: [{ role: 'user', content: null }] },
      '/messages/0/content must be a string or an array of parts',
    ],
    [{ messages: [{ role: 'user', content: ['x'] }] }, '/messages/0/content/0 must be an object'],
    [{ messages: [{ role: 'user', content: [{ type: 'text' }] }] }, '/messages/0/content/0/text is required'],
    [
      { messages: Array(1001).fill({ role: 'user', content: 'x' }) },
      '/messages must have at most 1000 messages',
    ],
    [{ stream: 'yes' }, '/stream must be true or false'],
    [{ stream_options: { include_usage: true } }, '/stream_options is for streams alone'],
    [{ stream: false, stream_options: {} }, '/stream_options is for streams alone'],
    [
      { stream: true, stream_options: { include_usage: 1 } },
      '/stream_options/include_usage must be true or false',
    ],
    [{ max_tokens: 0 }, '/max_tokens must be at least 1'],
    [{ max_tokens: 1.5 }, '/max_tokens must be a whole number'],
    [
      { max_tokens: 5, max_completion_tokens: 6 },
      '/max_tokens must be the same as max_completion_tokens, or absent',
    ],
    [{ temperature: 2.1 }, '/temperature must be at most 2'],
    [{ temperature: -1 }, '/temperature must be at least 0'],
    [{ temperature: '1' }, '/temperature must be a number'],
    [{ temperature: Number.POSITIVE_INFINITY }, '/temperature must be a number'],
    [{ top_p: 1.1 }, '/top_p must be at most 1'],
    [{ frequency_penalty: 3 }, '/frequency_penalty must be at most 2'],
    [{ seed: 1.5 }, '/seed must be a whole number'],
    [{ seed: 2 ** 60 }, '/seed must be at most 9007199254740991'],
    [{ verbosity: 'secret' }, '/verbosity is not one of the documented values'],
    [{ reasoning_effort: 'secret' }, '/reasoning_effort is not one of the documented values'],
    [{ stop: '' }, '/stop must be at least 1 characters long'],
    [{ stop: ['x'.repeat(1001)] }, '/stop/0 must be at most 1000 characters long'],
    [{ stop: 5 }, '/stop must be a text of 1 to 1000 characters, or up to 4 of them'],
    [{ stop: ['a', 'b', 'c', 'd', 'e'] }, '/stop must be a text of 1 to 1000 characters, or up to 4 of them'],
    [{ stop: ['a', 5] }, '/stop/1 must be a string'],
  ])('is refused: %j', (fields, reason) => {
    expect(refusal(fields)).toBe(`invalid_request ${reason}`);
  });

  it.each([null, 5, 'x', [], [{}]])('is refused as a body: %j', (body) => {
    expect(() => parseCompletionBody(body, 1000)).toThrow(
      expect.objectContaining({ facts: { errors: [{ pointer: '', detail: 'must be an object' }] } }),
    );
  });

  it.each([[[]], [[{ role: 'user', content: ' ' }]], [[{ role: 'user', content: [] }]]])(
    'is refused as a conversation: %j',
    (given) => {
      expect(refusal({ messages: given })).toBe('empty_conversation');
    },
  );
});

describe('a model', () => {
  const choose = (model: string, named?: ProviderId) => {
    const { provider, model: chosen } = toCompletionRequest(
      parseCompletionBody({ model, messages }, 1000),
      named,
      new RequestImages(1000),
    );
    return [provider, chosen];
  };

  it.each<[string, ProviderId | undefined, string[]]>([
    ['openai/gpt', undefined, ['openai', 'gpt']],
    ['openai/gpt', 'openai', ['openai', 'gpt']],
    ['gpt', 'openai', ['openai', 'gpt']],
    ['meta/llama', 'openai', ['openai', 'meta/llama']],
    ['vertexai/publishers/x/models/y', undefined, ['vertexai', 'publishers/x/models/y']],
    ['openai/anthropic/claude', undefined, ['openai', 'anthropic/claude']],
    ['bedrock/eu.amazon.nova-pro-v1:0', undefined, ['bedrock', 'eu.amazon.nova-pro-v1:0']],
  ])('%s with X-LLM %s', (model, named, expected) => {
    expect(choose(model, named)).toEqual(expected);
  });

  it.each(['gpt', 'openai', 'azure/gpt', 'OpenAI/gpt', '__proto__/gpt', '', '/gpt'])(
    'is not found without a provider: %j',
    (model) => {
      expect(() => choose(model)).toThrow(
        expect.objectContaining({
          facts: expect.objectContaining({
            errors: [expect.objectContaining({ pointer: expect.stringMatching(/model$/i) })],
          }),
        }),
      );
    },
  );

  it('may not contradict the header', () => {
    expect(() => choose('openai/gpt', 'bedrock')).toThrow(
      expect.objectContaining({
        facts: { errors: [{ pointer: '/model', detail: 'names another provider than X-LLM' }] },
      }),
    );
  });
});

describe('a conversation', () => {
  it('keeps its order, takes developer for system, and joins text parts', () => {
    const { turns } = read({
      messages: [
        { role: 'developer', content: 'Be brief.' },
        { role: 'assistant', content: 'Hi', refusal: null, annotations: [], tool_calls: [], audio: null },
        { role: 'system', content: ' ' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'a' },
            { type: 'text', text: 'b' },
          ],
        },
      ],
    });
    expect(turns).toEqual([
      { role: 'system', content: 'Be brief.' },
      { role: 'assistant', content: 'Hi' },
      { role: 'user', content: 'ab' },
    ]);
  });

  it('of flex tier comes after all others', () => {
    expect(read({ service_tier: 'flex' }).isLowPriority).toBe(true);
    expect(read({}).isLowPriority).toBe(false);
  });

  it('is streamed, with or without usage', () => {
    expect(read({ stream: true })).toMatchObject({ isStream: true, includesUsage: false });
    const options = { stream_options: { include_usage: true, include_obfuscation: false } };
    expect(read({ stream: true, ...options })).toMatchObject({ isStream: true, includesUsage: true });
  });
});
