import { describe, expect, it } from 'vitest';
import type { ProviderId } from '../../../shared/contract.js';
import type { ModelParameters } from '../../../shared/protocol/model-parameters.js';
import { type PlayedAnswer, startPlaying } from '../../support/playing-provider.js';
import {
  anthropic,
  bedrock,
  converseDeltas,
  converseUsed,
  deltas,
  openai,
  plain,
  reasoning,
  started,
  thinking,
  usage,
  used,
  vertexai,
} from '../../support/provider-answers.js';
import { replyModes } from '../../support/providers.js';

const { play } = await startPlaying();
const tools = [{ name: 'weather' }, { name: 'clock' }];
const json = '{"city":"Bern"}';
const large = '{"id":12345678901234567890,"sum":0.12345678901234567890,"none":null}';

/** Calls in the message of OpenAI, and in a piece of its stream. */
const wireCall = (id: string, name = 'weather', text = json) => ({
  ...{ id, type: 'function' },
  function: { name, arguments: text },
});
const toolCall = (index: number, piece: object, id?: string) => ({ index, id, function: piece });
const use = (id: string, name = 'weather', input: object = { city: 'Bern' }) => ({
  ...{ type: 'tool_use', id, name, input },
});
const toolUse = (toolUseId: string, name = 'weather', input: object = { city: 'Bern' }) => ({
  toolUse: { toolUseId, name, input },
});
const callA = ['a', 'weather', json, undefined];
const callB = ['b', 'clock', '{}', undefined];
const both = { text: 'Look:', reason: 'stop', calls: [callA, callB] };

const signedCalls = (blocks: object) => ({ calls: [['a', 'weather', json, JSON.stringify(blocks)], callB] });

const geminiCalls = [
  ...[{ text: 'thinking', thought: true }, { text: 'Look:' }],
  { functionCall: { name: 'weather', args: { city: 'Bern' }, id: 'a' }, thoughtSignature: 'AAAA' },
  { functionCall: { name: 'clock' } },
];

const stopped = (index: number): [string, object] => ['content_block_stop', { index }];

/** One call whose input is this text. */
const callWith = (input: string, stopReason = 'tool_use') => ({
  anthropic: anthropic({
    blocks: [`{"type":"tool_use","id":"a","name":"weather","input":${input}}`],
    ...{ pieces: used(0, 'a', 'weather', input), stopReason },
  }),
  bedrock: bedrock({
    blocks: [`{"toolUse":{"toolUseId":"a","name":"weather","input":${input}}}`],
    ...{ pieces: converseUsed(0, 'a', 'weather', input), stopReason },
  }),
});

type Answer = [provider: ProviderId, given: string, answer: PlayedAnswer, gives: object, ModelParameters?];
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
    anthropic({
      blocks: [{ type: 'text', text: 'Look:' }, use('a'), use('b', 'clock', {})],
      pieces: [
        started(0, { type: 'text', text: '' }),
        ...deltas(0, { type: 'text_delta', text: 'Look:' }),
        ...used(1, 'a', 'weather', '', '{"city"', ':"Bern"}'),
        ...used(2, 'b', 'clock'),
      ],
    }),
    { ...both, usage: { ...usage, cacheWriteTokens: 2, reasoningTokens: 3 } },
  ],
  [
    'bedrock',
    'calls behind a text',
    bedrock({
      blocks: [{ text: 'Look:' }, toolUse('a'), toolUse('b', 'clock', {})],
      pieces: [
        ...converseDeltas(0, { text: 'Look:' }),
        ...converseUsed(1, 'a', 'weather', '', '{"city"', ':"Bern"}'),
        ...converseUsed(2, 'b', 'clock'),
      ],
    }),
    { ...both, usage: { ...usage, cacheWriteTokens: 2 } },
  ],
  [
    'vertexai',
    'calls behind thoughts and a text, which end with STOP in a later chunk',
    vertexai([geminiCalls.slice(0, 3), geminiCalls.slice(3), [{ text: '' }]]),
    {
      ...{ text: 'Look:', reason: 'stop', usage: { ...usage, reasoningTokens: 3 } },
      calls: [
        ['a', 'weather', json, 'AAAA'],
        [expect.stringMatching(/^call_[\w-]{24}$/), 'clock', '{}', undefined],
      ],
    },
  ],
  [
    'openai',
    'calls that all have the index 0, as some servers number them',
    openai({ content: '', tool_calls: [wireCall('a'), wireCall('b', 'clock', '{}')] }, [
      { tool_calls: [toolCall(0, { name: 'weather', arguments: '{"city"' }, 'a')] },
      // Some name the call again with each piece.
      { tool_calls: [toolCall(0, { name: 'weather', arguments: ':"Bern"}' }, 'a')] },
      { tool_calls: [toolCall(0, { name: 'clock', arguments: '{}' }, 'b')] },
    ]),
    { text: '', calls: [callA, callB] },
  ],
  [
    'anthropic',
    'signed thinking, which goes with the first of its calls',
    anthropic({
      blocks: [...thinking, use('a'), use('b', 'clock', {})],
      pieces: [
        started(0, { type: 'thinking', thinking: '', signature: '' }),
        ...deltas(0, ...['Hm ', '“ß”\n'].map((text) => ({ type: 'thinking_delta', thinking: text }))),
        ...deltas(0, { type: 'signature_delta', signature: 'c2ln' }),
        started(1, { type: 'thinking', thinking: '', signature: '' }),
        ...deltas(1, { type: 'signature_delta', signature: 'bm9uZQ==' }),
        started(2, { type: 'redacted_thinking', data: 'cmVk' }),
        ...[...used(3, 'a', 'weather', json), ...used(4, 'b', 'clock', '{}')],
      ],
    }),
    signedCalls(thinking),
  ],
  [
    'bedrock',
    'signed thinking, which goes with the first of its calls',
    bedrock({
      blocks: [
        ...reasoning.map((reasoningContent) => ({ reasoningContent })),
        ...[toolUse('a'), toolUse('b', 'clock', {})],
      ],
      pieces: [
        ...converseDeltas(0, { reasoningContent: { text: 'Hm ' } }, { reasoningContent: { text: '“ß”\n' } }),
        ...converseDeltas(0, { reasoningContent: { signature: 'c2ln' } }),
        ...converseDeltas(1, { reasoningContent: { signature: 'bm9uZQ==' } }),
        ...converseDeltas(2, { reasoningContent: { redactedContent: 'cmVk' } }),
        ...[...converseUsed(3, 'a', 'weather', json), ...converseUsed(4, 'b', 'clock', '{}')],
      ],
    }),
    signedCalls(reasoning),
  ],
  [
    'anthropic',
    'arguments that stand at the beginning of their call, as some relays write them',
    anthropic({
      blocks: [use('a'), use('b', 'clock', {}), use('c', 'weather', { city: 'Basel' })],
      pieces: [
        ...[started(0, use('a')), stopped(0), ...used(1, 'b', 'clock', '')],
        started(2, use('c', 'weather', { city: 'Basel' })),
      ],
    }),
    { text: '', calls: [callA, callB, ['c', 'weather', '{"city":"Basel"}', undefined]] },
  ],
  [
    'openai',
    'a call that the token limit has cut',
    openai(
      { content: null, tool_calls: [wireCall('a', 'weather', '{"ci')] },
      [{ tool_calls: [toolCall(0, { name: 'weather', arguments: '{"ci' }, 'a')] }],
      'length',
    ),
    { reason: 'length', text: '', calls: [['a', 'weather', '{"ci', undefined]] },
  ],
  ...(['anthropic', 'bedrock'] as const).flatMap((id): Answer[] => [
    [
      id,
      'each digit of a number',
      callWith(large)[id],
      { text: '', calls: [['a', 'weather', large, undefined]] },
    ],
    [
      id,
      'a call that the token limit has cut',
      callWith(json, 'max_tokens')[id],
      { reason: 'length', text: '', calls: [callA] },
    ],
  ]),
  [
    'openai',
    'a refusal in place of JSON as blocked',
    openai({ content: null, refusal: 'No.' }, [{ refusal: 'No.' }], 'stop'),
    { reason: 'blocked', text: '' },
    { format: { type: 'json_object' } },
  ],
  [
    'vertexai',
    'a call that is blocked as none',
    vertexai([geminiCalls], 'SAFETY'),
    { reason: 'blocked', text: '', calls: [] },
  ],
];

describe.each(replyModes)('$mode', ({ stream }) => {
  it.each(answers)(
    'an answer of %s -> is read with %s',
    async (provider, _, answer, gives, parameters = { tools }) => {
      expect(await play(provider, answer, { stream, parameters })).toMatchObject(gives);
    },
  );

  it.each<[ProviderId, string, string]>([
    ['anthropic', 'pause_turn', 'unfinished'],
    ['bedrock', 'malformed_tool_use', 'malformed_call'],
    ['bedrock', 'malformed_model_output', 'malformed_call'],
    ['vertexai', 'MALFORMED_FUNCTION_CALL', 'malformed_call'],
    ['vertexai', 'UNEXPECTED_TOOL_CALL', 'malformed_call'],
    ['vertexai', 'TOO_MANY_TOOL_CALLS', 'malformed_call'],
    ['vertexai', 'MALFORMED_RESPONSE', 'malformed_call'],
  ])(
    'an answer of %s that ends with %s -> is none, and may be asked for again',
    async (provider, end, word) => {
      await expect(
        play(provider, plain[provider](end), { stream, parameters: { tools } }),
      ).rejects.toMatchObject({
        ...{ code: 'provider_error', retryable: true, cause: { word } },
      });
    },
  );
});
