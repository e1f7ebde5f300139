import { describe, expect, it } from 'vitest';
import type { Completion } from '../../../../api/chat/chat-result.js';
import { toChatCompletion, toStoredCompletion } from '../../../../api/chat-apis/openai-chat/completion.js';
import { type ProviderId, providerIds } from '../../../../shared/contracts/contract.js';
import { isCompletionOfOpenAi } from '../../../support/openai-schemas.js';

const reply = (more: Partial<Completion>): Completion =>
  ({ kind: 'ok', text: 'Hello', model: 'm', queueMs: 0, providerMs: 0, ...more }) as Completion;
const call = (id: string, at: number) => ({ kind: 'call', id, name: 'weather', at }) as const;

function completionOf(more: Partial<Completion>, provider: ProviderId = 'openai') {
  const head = { id: 'x', created: 1, provider, model: `${provider}/m`, isFlex: false };
  const completion = toChatCompletion(head, reply(more));
  expect(isCompletionOfOpenAi(completion)).toBe(true);
  return completion;
}
const choiceOf = (more: Partial<Completion>, provider?: ProviderId) =>
  completionOf(more, provider).choices[0];

describe('toChatCompletion', () => {
  it.each<[string, Partial<Completion>, object]>([
    ['text', {}, { message: { content: 'Hello' }, finish_reason: 'stop' }],
    ['no text', { text: '' }, { message: { content: '' }, finish_reason: 'stop' }],
    ['text that was cut', { kind: 'truncated' }, { message: { content: 'Hello' }, finish_reason: 'length' }],
    [
      'a call alone',
      { text: '{"x":1}', marks: [call('a', 0)] },
      {
        message: {
          content: null,
          tool_calls: [{ id: 'a', type: 'function', function: { name: 'weather', arguments: '{"x":1}' } }],
        },
        finish_reason: 'tool_calls',
      },
    ],
    [
      'text around calls',
      { text: 'Hi{}{"y":2}bye', marks: [call('a', 2), call('b', 4), { kind: 'text', at: 11 }] },
      {
        message: {
          content: 'Hibye',
          tool_calls: [
            { id: 'a', function: { arguments: '{}' } },
            { id: 'b', function: { arguments: '{"y":2}' } },
          ],
        },
        finish_reason: 'tool_calls',
      },
    ],
    [
      'a call that was cut',
      { kind: 'truncated', text: '{"x', marks: [call('a', 0)] },
      {
        message: { content: null, tool_calls: [{ function: { arguments: '{"x' } }] },
        finish_reason: 'length',
      },
    ],
  ])('has %s', (_, completion, expected) => {
    expect(choiceOf(completion)).toMatchObject(expected);
  });

  it('has no tool_calls without calls', () => {
    expect(choiceOf({})?.message).toEqual({ role: 'assistant', content: 'Hello', refusal: null });
  });

  it('has a signature where the clients of the provider that wrote it look for it', () => {
    const block = '{"thoughtSignature":"s","of":"call"}';
    const extra = providerIds.map((provider) => {
      const opaque = {
        kind: 'opaque',
        at: 0,
        length: block.length,
        provider,
        model: 'm',
        role: 'block',
      } as const;
      const signed = { text: `${block}{}`, marks: [opaque, call('a', block.length)] };
      return choiceOf(signed, 'vertexai')?.message.tool_calls?.[0]?.extra_content;
    });
    expect(extra).toEqual([
      { openai: { reasoning: `[${block}]`, model: 'm' } },
      { anthropic: { signed_thinking: `[${block}]`, model: 'm' } },
      { bedrock: { signed_thinking: `[${block}]`, model: 'm' } },
      { google: { thought_signature: 's', model: 'm' } },
    ]);
  });

  it.each([
    [{}, {}],
    [{ cachedTokens: 0 }, { prompt_tokens_details: { cached_tokens: 0 } }],
    [
      { cachedTokens: 3, cacheWriteTokens: 2, reasoningTokens: 1 },
      {
        prompt_tokens_details: { cached_tokens: 3, cache_write_tokens: 2 },
        completion_tokens_details: { reasoning_tokens: 1 },
      },
    ],
  ])('tells of %j what is known', (details, expected) => {
    expect(completionOf({ usage: { inputTokens: 7, outputTokens: 5, ...details } }).usage).toEqual({
      ...{ prompt_tokens: 7, completion_tokens: 5, total_tokens: 12 },
      ...expected,
    });
  });
});

describe('toStoredCompletion', () => {
  it('is what the door would have sent', () => {
    const chat = { id: 'x', provider: 'openai', model: 'm', createdAt: 1999 } as Parameters<
      typeof toStoredCompletion
    >[0];
    expect(toStoredCompletion(chat, reply({}))).toEqual(completionOf({}));
  });
});
