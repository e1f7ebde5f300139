import { describe, expect, it } from 'vitest';
import { parseCompletionBody } from '../../../../api/chat-apis/openai-chat/completion-body.js';
import {
  ignoredFieldsOf,
  toCompletionRequest,
} from '../../../../api/chat-apis/openai-chat/completion-request.js';
import { RequestImages } from '../../../../api/chat-apis/openai-chat/images.js';
import { parseConfig } from '../../../../shared/config/config.js';
import { type ProviderId, providerIds } from '../../../../shared/contracts/contract.js';
import { readBody, refusalOf } from '../../../support/completion-bodies.js';

describe('a field', () => {
  it.each([
    ...Object.entries({ temperature: 1, top_p: 1, n: 1, frequency_penalty: 0, presence_penalty: 0 }),
    ...Object.entries({ logprobs: false, top_logprobs: 0, logit_bias: {}, store: false, stop: [] }),
    ...Object.entries({ tools: [], functions: [], tool_choice: 'none', function_call: 'none' }),
    ...Object.entries({ parallel_tool_calls: true, response_format: { type: 'text' }, modalities: ['text'] }),
    ...Object.entries({ service_tier: 'auto', stream: false }),
    ...Object.entries({ tool_choice: 'auto', parallel_tool_calls: false, service_tier: 'default' }),
  ])('%s is %j, which changes nothing → taken for every provider', (field, value) => {
    for (const provider of providerIds) expect(refusalOf({ [field]: value }, provider)).toBe('taken');
  });

  it.each([
    ...['temperature', 'top_p', 'n', 'frequency_penalty', 'presence_penalty', 'logprobs', 'top_logprobs'],
    ...['logit_bias', 'store', 'stop', 'tools', 'functions', 'tool_choice', 'function_call', 'seed', 'audio'],
    ...['parallel_tool_calls', 'response_format', 'modalities', 'service_tier', 'stream', 'stream_options'],
    ...['max_tokens', 'max_completion_tokens', 'reasoning_effort', 'prediction', 'web_search_options'],
  ])('%s is null → as if it were absent', (field) => {
    expect(readBody({ [field]: null })).toEqual(readBody({}));
  });

  it.each([
    ...Object.entries({ user: 'me', metadata: { a: 'b' }, safety_identifier: 'x', prompt_cache_key: 5 }),
    ['prompt_cache_key', 'x'.repeat(513)],
  ])('%s is %j → accepted, and never read', (field, value) => {
    expect(readBody({ [field]: value })).toEqual(readBody({}));
  });

  it.each([
    [{ max_tokens: 5 }, { maxOutputTokens: 5 }],
    [{ max_completion_tokens: 5 }, { maxOutputTokens: 5 }],
    [{ max_completion_tokens: 5, max_tokens: 5 }, { maxOutputTokens: 5 }],
    [{ max_completion_tokens: null, max_tokens: 5 }, { maxOutputTokens: 5 }],
    [{ max_completion_tokens: 5, max_tokens: null }, { maxOutputTokens: 5 }],
    [{ stop: 'END' }, { stop: ['END'] }],
    [{ prompt_cache_key: 'x' }, { cacheKey: 'x' }],
    [{ stop: ['a', 'b', 'c', 'd'] }, { stop: ['a', 'b', 'c', 'd'] }],
  ])('says %j → every model is asked for %j', (fields, parameters) => {
    for (const provider of providerIds) expect(readBody(fields, provider).parameters).toEqual(parameters);
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
  ])('is %j → it is kept for a fallback, and named where it is ignored', (fields, parameters, able) => {
    for (const provider of providerIds) {
      const { parameters: asked } = readBody(fields, provider);
      expect(asked, provider).toEqual(parameters);
      expect(ignoredFieldsOf(provider, asked), provider).toEqual(
        able.includes(provider) ? [] : Object.keys(fields),
      );
    }
  });
});

describe('what no provider can do', () => {
  const said = (content: object) => ({ messages: [{ role: 'user', content: [content] }] });
  const refusal = { type: 'refusal', refusal: 'x' };
  const assistant = (message: object) => ({ messages: [{ role: 'assistant', content: 'x', ...message }] });

  it.each([
    [{ n: 2 }, '/n must be 1: a completion has one choice here'],
    [{ logprobs: true }, '/logprobs must be false: log probabilities are not supported'],
    [{ top_logprobs: 3 }, '/top_logprobs must be 0: log probabilities are not supported'],
    [{ logit_bias: { 'secret of the caller': -100 } }, '/logit_bias must be empty: it is not supported'],
    [{ audio: { voice: 'x', format: 'mp3' } }, '/audio is not supported'],
    [{ modalities: ['text', 'audio'] }, '/modalities must contain only text'],
    [{ modalities: ['audio'] }, '/modalities/0 must contain only text'],
    [{ prediction: { type: 'content', content: 'x' } }, '/prediction is not supported'],
    [{ web_search_options: {} }, '/web_search_options is not supported'],
    [{ functions: [{ name: 'f' }] }, '/functions is not supported: use tools'],
    [{ function_call: 'auto' }, '/function_call is not supported: use tool_choice'],
    [{ store: 'yes' }, '/store must be true or false'],
    [{ service_tier: 1 }, '/service_tier must be a string'],
    [{ messages: [{ role: 'function' }] }, '/messages/0/role function is not supported: use tool'],
    [assistant({ function_call: {} }), '/messages/0/function_call is not supported: use tool_calls'],
    [assistant({ content: [refusal] }), '/messages/0/content/0/type refusal parts are not supported'],
    [said({ type: 'input_audio' }), '/messages/0/content/0/type input_audio parts are not supported'],
    [said({ type: 'secret-of-the-caller' }), '/messages/0/content/0/type must be text or image_url'],
  ])('is asked for as %j → refused by name: %s', (fields, reason) => {
    for (const provider of providerIds) expect(refusalOf(fields, provider), provider).toBe(reason);
  });
});

describe('what is wrong for anybody', () => {
  const message = (value: unknown) => ({ messages: [value] });
  const many = Array(1001).fill({ role: 'user', content: 'x' });
  const roles = 'must be system, developer, user, assistant or tool';
  const stops = 'must be a text of 1 to 1000 characters, or up to 4 of them';
  const sameLimit = 'must be the same as max_completion_tokens, or absent';
  const efforts = 'none, minimal, low, medium, high, xhigh, max';
  const counted = { stream_options: { include_usage: true } };
  const miscounted = { stream: true, stream_options: { include_usage: 1 } };

  it.each<[object, string]>([
    [{ model: undefined }, '/model is required'],
    [{ model: 5 }, '/model must be a string'],
    [{ messages: undefined }, '/messages is required'],
    [{ messages: 'x' }, '/messages must be an array'],
    [message('x'), '/messages/0 must be an object'],
    [message({ content: 'x' }), `/messages/0/role ${roles}`],
    [message({ role: ['user'], content: 'x' }), `/messages/0/role ${roles}`],
    [message({ role: 'user' }), '/messages/0/content is required'],
    [message({ role: 'user', content: null }), '/messages/0/content must be a string or an array of parts'],
    [message({ role: 'user', content: ['x'] }), '/messages/0/content/0 must be an object'],
    [message({ role: 'user', content: [{ type: 'text' }] }), '/messages/0/content/0/text is required'],
    [{ messages: many }, '/messages must have at most 1000 messages'],
    [{ stream: 'yes' }, '/stream must be true or false'],
    [counted, '/stream_options is only for streams'],
    [{ stream: false, stream_options: {} }, '/stream_options is only for streams'],
    [miscounted, '/stream_options/include_usage must be true or false'],
    [{ max_tokens: 0 }, '/max_tokens must be at least 1'],
    [{ max_tokens: 1.5 }, '/max_tokens must be a whole number'],
    [{ max_tokens: 5, max_completion_tokens: 6 }, `/max_tokens ${sameLimit}`],
    [{ temperature: 2.1 }, '/temperature must be at most 2'],
    [{ temperature: -1 }, '/temperature must be at least 0'],
    [{ temperature: '1' }, '/temperature must be a number'],
    [{ temperature: Number.POSITIVE_INFINITY }, '/temperature must be a number'],
    [{ top_p: 1.1 }, '/top_p must be at most 1'],
    [{ frequency_penalty: 3 }, '/frequency_penalty must be at most 2'],
    [{ seed: 1.5 }, '/seed must be a whole number'],
    [{ seed: 2 ** 60 }, '/seed must be at most 9007199254740991'],
    [{ verbosity: 'secret' }, '/verbosity must be one of: low, medium, high'],
    [{ reasoning_effort: 'secret' }, `/reasoning_effort must be one of: ${efforts}`],
    [{ stop: '' }, '/stop must not be empty'],
    [{ stop: ['x'.repeat(1001)] }, '/stop/0 must be at most 1000 characters'],
    [{ stop: 5 }, `/stop ${stops}`],
    [{ stop: ['a', 'b', 'c', 'd', 'e'] }, `/stop ${stops}`],
    [{ stop: ['a', 5] }, '/stop/1 must be a string'],
    [{ messages: [] }, 'empty_conversation'],
    [message({ role: 'user', content: ' ' }), 'empty_conversation'],
    [message({ role: 'user', content: [] }), 'empty_conversation'],
  ])('is %j → refused: %s', (fields, reason) => {
    expect(refusalOf(fields)).toBe(reason);
  });

  it.each([null, 5, 'x', [], [{}]])('is refused as a body: %j', (body) => {
    expect(() => parseCompletionBody(body, 1000)).toThrow(
      expect.objectContaining({ facts: { errors: [{ pointer: '', detail: 'must be an object' }] } }),
    );
  });
});

describe('a model', () => {
  const choose = (model: string, named?: ProviderId, names: string[] = []) => {
    const body = parseCompletionBody({ model, messages: [{ role: 'user', content: 'Hello' }] }, 1000);
    const aliases = parseConfig({ MODEL_ALIASES: names.join() }, 'config').MODEL_ALIASES ?? [];
    const chosen = toCompletionRequest(body, named, { images: new RequestImages(1000), aliases });
    return [chosen.provider, chosen.model];
  };

  it.each<[string, ProviderId | undefined, string[]]>([
    ['openai/gpt', undefined, ['openai', 'gpt']],
    ['openai/gpt', 'openai', ['openai', 'gpt']],
    ['gpt', 'openai', ['openai', 'gpt']],
    ['meta/llama', 'openai', ['openai', 'meta/llama']],
    ['vertexai/publishers/x/models/y', undefined, ['vertexai', 'publishers/x/models/y']],
    ['openai/anthropic/claude', undefined, ['openai', 'anthropic/claude']],
    ['bedrock/eu.amazon.nova-pro-v1:0', undefined, ['bedrock', 'eu.amazon.nova-pro-v1:0']],
  ])('is %s with X-LLM %s → %j is asked', (model, named, expected) => {
    expect(choose(model, named)).toEqual(expected);
  });

  const names = ['gpt-4o=openai/big', 'gpt-4*=bedrock/eu.x:0', 'meta/llama=vertexai/a/b', '*=openai/any'];
  it.each<[string, ProviderId | undefined, string[]]>([
    ['gpt-4o', undefined, ['openai', 'big']],
    ['gpt-4o-mini', undefined, ['bedrock', 'eu.x:0']],
    ['gpt-4', undefined, ['bedrock', 'eu.x:0']],
    ['GPT-4', undefined, ['openai', 'any']],
    ['meta/llama', undefined, ['vertexai', 'a/b']],
    ['gpt-4o', 'anthropic', ['anthropic', 'gpt-4o']],
    ['anthropic/gpt-4o', undefined, ['anthropic', 'gpt-4o']],
  ])('is %s with X-LLM %s, where others have names → %j is asked', (model, named, expected) => {
    expect(choose(model, named, names)).toEqual(expected);
  });

  it('fits no name → not found', () => {
    expect(() => choose('gpt-5', undefined, names.slice(0, 3))).toThrow(errorAt('/model'));
  });

  const errorAt = (pointer: string) =>
    expect.objectContaining({ facts: { errors: [{ pointer, detail: expect.any(String) }] } });
  it.each(['gpt', 'openai', 'azure/gpt', 'OpenAI/gpt', '__proto__/gpt', '', '/gpt'])(
    'has no provider: %j → not found',
    (model) => {
      expect(() => choose(model)).toThrow(errorAt(expect.stringMatching(/model$/i)));
    },
  );

  it('contradicts the header → refused', () => {
    expect(() => choose('openai/gpt', 'bedrock')).toThrow(errorAt('/model'));
  });
});

describe('a conversation', () => {
  it('has all roles → it keeps its order, developer is system, and text parts are joined', () => {
    const { turns } = readBody({
      messages: [
        { role: 'developer', content: 'Be brief.' },
        { role: 'assistant', content: 'Hi', refusal: null, annotations: [], tool_calls: [], audio: null },
        { role: 'system', content: ' ' },
        { role: 'user', content: ['a', 'b'].map((text) => ({ type: 'text', text })) },
      ],
    });
    expect(turns).toEqual([
      { role: 'system', content: 'Be brief.' },
      { role: 'assistant', content: 'Hi' },
      { role: 'user', content: 'ab' },
    ]);
  });

  const counted = { include_usage: true, include_obfuscation: false };
  it.each<[object, object]>([
    [{}, { isLowPriority: false, isStream: false, includesUsage: false }],
    [{ service_tier: 'flex' }, { isLowPriority: true }],
    [{ stream: true }, { isStream: true, includesUsage: false }],
    [
      { stream: true, stream_options: counted },
      { isStream: true, includesUsage: true },
    ],
  ])('is asked for with %j → %j', (fields, expected) => {
    expect(readBody(fields)).toMatchObject(expected);
  });
});
