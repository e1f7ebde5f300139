import { describe, expect, it, vi } from 'vitest';
import type { ProviderId } from '../../../shared/contracts/contract.js';
import { type PlayedAnswer, startPlaying } from '../../support/playing-provider.js';
import { openai, plain, saying, usage, vertexai } from '../../support/provider-answers.js';
import { replyModes } from '../../support/providers.js';

const { play } = await startPlaying();
const tools = [{ name: 'weather' }, { name: 'clock' }];
const json = '{"city":"Bern"}';

/** Calls in the message of OpenAI, and in a piece of its stream. */
const wireCall = (id: string, name = 'weather', text = json) => ({
  ...{ id, type: 'function' },
  function: { name, arguments: text },
});
const toolCall = (index: number, piece: object, id?: string) => ({ index, id, function: piece });
/** The two calls, with the pieces of their arguments. */
const called = [['a', 'weather', '', '{"city"', ':"Bern"}'] as const, ['b', 'clock'] as const];
const callA = ['a', 'weather', json];
const callB = ['b', 'clock', '{}'];
const both = { text: 'Look:', reason: 'stop', calls: [callA, callB] };

const geminiCalls = [
  ...[{ text: 'thinking', thought: true }, { text: 'Look:' }],
  { functionCall: { name: 'weather', args: { city: 'Bern' }, id: 'a' }, thoughtSignature: 'AAAA' },
  { functionCall: { name: 'clock' } },
];

type Answer = [provider: ProviderId, given: string, answer: PlayedAnswer, gives: object];
const answers: Answer[] = [
  [
    'openai',
    'calls behind a text',
    openai({ content: 'Look:', tool_calls: [wireCall('a'), wireCall('b', 'clock', '')] }, [
      { role: 'assistant', content: 'Look:' },
      { tool_calls: [toolCall(0, { name: 'weather', arguments: '' }, 'a')] },
      { tool_calls: [toolCall(0, { arguments: '{"city"' })] },
      {
        tool_calls: [
          toolCall(0, { arguments: ':"Bern"}' }),
          toolCall(1, { name: 'clock', arguments: '' }, 'b'),
        ],
      },
    ]),
    { ...both, usage: { ...usage, cacheWriteTokens: 2, reasoningTokens: 3 } },
  ],
  [
    'anthropic',
    'calls behind a text',
    saying.anthropic(['Look:'], 'tool_use', ...called),
    { ...both, usage: { ...usage, cacheWriteTokens: 2, cacheWrite1hTokens: 1, reasoningTokens: 3 } },
  ],
  [
    'bedrock',
    'calls behind a text',
    saying.bedrock(['Look:'], 'tool_use', ...called),
    { ...both, usage: { ...usage, cacheWriteTokens: 2, cacheWrite1hTokens: 1 } },
  ],
  [
    'vertexai',
    'calls behind thoughts and a text, which end with STOP in a later chunk',
    vertexai([geminiCalls.slice(0, 3), geminiCalls.slice(3), [{ text: '' }]]),
    {
      ...{ text: 'Look:', reason: 'stop', usage: { ...usage, reasoningTokens: 3 } },
      calls: [
        ['a', 'weather', json],
        [expect.stringMatching(/^call_[\w-]{24}$/), 'clock', '{}'],
      ],
    },
  ],
  [
    'openai',
    'a refusal in place of a text as blocked',
    openai({ content: null, refusal: 'No.' }, [{ refusal: 'No.' }], 'stop'),
    { reason: 'blocked', text: '' },
  ],
  [
    'vertexai',
    'a call that is blocked as none',
    vertexai([geminiCalls], 'SAFETY'),
    { reason: 'blocked', text: '', calls: [] },
  ],
  [
    'vertexai',
    'a text that is blocked as none',
    vertexai([[{ text: 'Hi' }]], 'LANGUAGE'),
    { reason: 'blocked', text: '' },
  ],
  [
    'vertexai',
    'thoughts alone, which have used up its tokens',
    vertexai([[]], 'MAX_TOKENS', { promptTokenCount: 7, thoughtsTokenCount: 90 }),
    { text: '', reason: 'length', usage: { inputTokens: 7, outputTokens: 90 } },
  ],
  [
    'vertexai',
    'a text, behind results of its own tools',
    vertexai([[{ text: 'Hi' }]], 'STOP', {
      ...{ promptTokenCount: 7, toolUsePromptTokenCount: 5, candidatesTokenCount: 3 },
    }),
    { text: 'Hi', reason: 'stop', usage: { inputTokens: 12, outputTokens: 3 } },
  ],
];

describe.each(replyModes)('$mode', ({ stream }) => {
  it.each(answers)('an answer of %s -> is read with %s', async (provider, _, answer, gives) => {
    const reply = play(provider, answer, { stream, parameters: { tools }, blankAllowedFor: ['length'] });
    expect(await reply).toMatchObject(gives);
  });

  it.each<[ProviderId, object]>([
    ['openai', { tier: 'flex' }],
    ['anthropic', { tier: 'priority' }],
    ['bedrock', { tier: 'flex' }],
    ['vertexai', { tier: 'ON_DEMAND', answerId: 'r-1' }],
  ])('an answer of %s -> its meter hears %j, once', async (id, told) => {
    const heard = vi.fn();
    const meter = { sent: () => {}, head: () => {}, heard };
    await play(id, plain[id](), { stream, meter });
    expect(heard.mock.calls).toMatchObject([[{ ...told, isComplete: true, bytes: 2 }]]);
  });

  it.each<[ProviderId, string, string]>([
    ['openai', 'error', 'unfinished'],
    ['openai', 'abort', 'unfinished'],
    ['openai', 'insufficient_system_resource', 'unfinished'],
    ['anthropic', 'pause_turn', 'unfinished'],
    ['bedrock', 'malformed_tool_use', 'malformed_call'],
    ['bedrock', 'malformed_model_output', 'malformed_call'],
    ['vertexai', 'MALFORMED_FUNCTION_CALL', 'malformed_call'],
    ['vertexai', 'UNEXPECTED_TOOL_CALL', 'malformed_call'],
    ['vertexai', 'TOO_MANY_TOOL_CALLS', 'malformed_call'],
    ['vertexai', 'MALFORMED_RESPONSE', 'malformed_call'],
  ])('an answer of %s that ends with %s -> is none, and may be asked for again', async (id, end, word) => {
    const broken = play(id, plain[id](end), { stream, parameters: { tools } });
    await expect(broken).rejects.toMatchObject({ code: 'provider_error', retryable: true, cause: { word } });
  });

  it.each<[ProviderId, string]>([
    ['openai', 'MAX_TOKENS'],
    ['openai', 'a new word'],
    ['anthropic', 'a new word'],
    ['bedrock', 'a new word'],
    ['vertexai', 'A_NEW_WORD'],
    ['vertexai', 'OTHER'],
    ['vertexai', 'NO_IMAGE'],
  ])('an answer of %s that ends with %s -> may be cut, and is given', async (id, end) => {
    expect(await play(id, plain[id](end), { stream })).toMatchObject({ text: '{}', reason: 'length' });
  });
});
