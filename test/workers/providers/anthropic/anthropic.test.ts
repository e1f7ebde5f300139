import { describe, expect, it } from 'vitest';
import { isMendable } from '../../../../shared/protocol/attempts.js';
import { providerErrorOf } from '../../../../workers/providers/errors/error-classification.js';
import { type PlayedAnswer, startPlaying } from '../../../support/playing-provider.js';
import {
  anthropic,
  bedrock,
  converseDeltas,
  converseUsed,
  deltas,
  reasoning as reasoningBlocks,
  saying,
  started,
  used,
} from '../../../support/provider-answers.js';
import { replyModes } from '../../../support/providers.js';

const { play } = await startPlaying();

/** The answer with these details of its end. */
const detailed = ({ whole, events }: PlayedAnswer, stop_details: unknown): PlayedAnswer => ({
  whole: JSON.stringify({ ...JSON.parse(whole), stop_details }),
  events: events.map(([name, data]) => {
    if (name !== 'message_delta') return [name, data];
    const { delta } = data as { delta: object };
    return [name, { ...(data as object), delta: { ...delta, stop_details } }];
  }),
});

const thought = { type: 'thinking', thinking: '', signature: 'c2ln' };
const silent = anthropic({
  blocks: [thought],
  pieces: [started(0, thought), ['content_block_stop', { index: 0 }]],
  stopReason: 'refusal',
});
const speaking = saying.anthropic(['Well'], 'refusal');

const blank = { type: 'thinking', thinking: '', signature: 'bm9uZQ==' };
const use = (id: string) => ({ type: 'tool_use', id, name: 'look', input: {} });
const toolUse = (toolUseId: string) => ({ toolUse: { toolUseId, name: 'look', input: {} } });
const ended = (contentBlockIndex: number): PlayedAnswer['events'][number] => [
  'contentBlockStop',
  { contentBlockIndex },
];
const stop = (index: number): PlayedAnswer['events'][number] => ['content_block_stop', { index }];
const tools = [{ name: 'look' }];
const opaque = (provider: 'anthropic' | 'bedrock', block: object) => ({
  ...{ kind: 'opaque', role: 'block', provider, model: 'm', data: JSON.stringify(block) },
});
const [hm, text, more] = [
  { kind: 'thinking', text: 'Hm' },
  { kind: 'text', text: 'Look' },
  { kind: 'text', text: ':' },
];
const call = { kind: 'call', name: 'look', arguments: '{}' };

/** The same reply of each: thinking in words, a text in two blocks, thinking without words and redacted, two calls. */
const thoughtful = {
  anthropic: anthropic({
    blocks: [
      { type: 'thinking', thinking: 'Hm', signature: 'c2ln' },
      ...[
        { type: 'text', text: 'Look' },
        { type: 'text', text: ':' },
      ],
      ...[blank, { type: 'redacted_thinking', data: 'cmVk' }, use('a'), use('b')],
    ],
    pieces: [
      started(0, { type: 'thinking', thinking: '', signature: '' }),
      ...deltas(0, { type: 'thinking_delta', thinking: 'H' }, { type: 'thinking_delta', thinking: 'm' }),
      ...[...deltas(0, { type: 'signature_delta', signature: 'c2ln' }), stop(0)],
      ...[
        started(1, { type: 'text', text: '' }),
        ...deltas(1, { type: 'text_delta', text: 'Look' }),
        stop(1),
      ],
      ...[started(2, { type: 'text', text: '' }), ...deltas(2, { type: 'text_delta', text: ':' }), stop(2)],
      ...[
        started(3, { ...blank, signature: '' }),
        ...deltas(3, { type: 'signature_delta', signature: 'bm9uZQ==' }),
      ],
      ...[
        stop(3),
        started(4, { type: 'redacted_thinking', data: 'cmVk' }),
        stop(4),
        ...[...used(5, 'a', 'look', '{}'), ...used(6, 'b', 'look', '{}')],
      ],
    ],
  }),
  bedrock: bedrock({
    blocks: [
      { reasoningContent: { reasoningText: { text: 'Hm', signature: 'c2ln' } } },
      ...[{ text: 'Look' }, { text: ':' }],
      { reasoningContent: { reasoningText: { text: '', signature: 'bm9uZQ==' } } },
      ...[{ reasoningContent: { redactedContent: 'cmVk' } }, ...[toolUse('a'), toolUse('b')]],
    ],
    pieces: [
      ...converseDeltas(0, { reasoningContent: { text: 'H' } }, { reasoningContent: { text: 'm' } }),
      ...[...converseDeltas(0, { reasoningContent: { signature: 'c2ln' } }), ended(0)],
      ...[
        ...converseDeltas(1, { text: 'Lo' }, { text: 'ok' }),
        ended(1),
        ...converseDeltas(2, { text: ':' }),
        ended(2),
      ],
      ...[...converseDeltas(3, { reasoningContent: { signature: 'bm9uZQ==' } }), ended(3)],
      ...[...converseDeltas(4, { reasoningContent: { redactedContent: 'cmVk' } }), ended(4)],
      ...[...converseUsed(5, 'a', 'look', '{}'), ...converseUsed(6, 'b', 'look', '{}')],
    ],
  }),
};
const blocks = {
  anthropic: [
    { type: 'thinking', thinking: 'Hm', signature: 'c2ln' },
    blank,
    { type: 'redacted_thinking', data: 'cmVk' },
  ],
  bedrock: [{ reasoningText: { text: 'Hm', signature: 'c2ln' } }, ...reasoningBlocks.slice(1)],
};

describe.each(replyModes)('a $mode reply that thinks', ({ stream }) => {
  describe.each(['anthropic', 'bedrock'] as const)('of %s', (provider) => {
    const [first, second, third] = blocks[provider].map((block) => opaque(provider, block));
    const piecesFor = async (reasoning?: 'opaque' | 'shown') => {
      const asked = { stream, parameters: { tools }, ...(reasoning && { reasoning }) };
      return (await play(provider, thoughtful[provider], asked)).pieces;
    };

    it('-> has its words, blocks and texts in their order, as far as its caller has a place for them', async () => {
      expect(await piecesFor('shown')).toMatchObject([hm, first, text, more, second, third, call, call]);
      expect(await piecesFor('opaque')).toMatchObject([first, text, more, second, third, call, call]);
      expect(await piecesFor()).toMatchObject([{ kind: 'text', text: 'Look:' }, call, call]);
    });
  });

  it('and is cut before it is signed -> has no block of it', async () => {
    const cut = anthropic({
      blocks: [
        { ...blank, thinking: 'Hm', signature: '' },
        { type: 'text', text: 'Well' },
      ],
      pieces: [
        ...[
          started(0, { ...blank, signature: '' }),
          ...deltas(0, { type: 'thinking_delta', thinking: 'Hm' }),
          stop(0),
        ],
        ...[started(1, { type: 'text', text: '' }), ...deltas(1, { type: 'text_delta', text: 'Well' })],
      ],
      stopReason: 'max_tokens',
    });
    const { pieces } = await play('anthropic', cut, { stream, reasoning: 'opaque' });
    expect(pieces).toEqual([{ kind: 'text', text: 'Well' }]);
  });
});

describe.each(replyModes)('a $mode reply that a classifier refuses', ({ stream }) => {
  it.each([
    [{ type: 'refusal', category: 'cyber', explanation: 'secret' }, 'refusal_cyber'],
    [{ type: 'refusal', category: null, explanation: null }, 'refusal_other'],
    [{ category: 'secret word' }, 'refusal_other'],
    [null, 'refusal_other'],
  ])(
    'before any text, with %j -> fails as %s, which another provider may mend, and is not repeated',
    async (details, type) => {
      const failure = await play('anthropic', detailed(silent, details), { stream }).catch((error) => error);
      expect(failure).toMatchObject({
        code: 'content_blocked',
        retryable: false,
        facts: { usage: { inputTokens: 15 } },
      });
      const ended = {
        provider: 'anthropic',
        code: failure.code,
        providerError: providerErrorOf(failure),
      } as const;
      expect(ended.providerError).toEqual({ type });
      expect(isMendable(ended)).toBe(true);
      expect(JSON.stringify([failure, failure.cause])).not.toContain('secret');
    },
  );

  it('behind text -> is blocked, as by any filter, in a stream with its category', async () => {
    const answer = detailed(speaking, { type: 'refusal', category: 'bio' });
    expect(await play('anthropic', answer, { stream })).toMatchObject({
      reason: 'blocked',
      ...(stream && { refusal: 'bio' }),
    });
    expect(isMendable({ provider: 'anthropic', code: 'content_blocked' })).toBe(false);
  });
});

describe('a block of thinking that is signed without end', () => {
  const piece = 's'.repeat(1_000_000);
  const block = (index: number, delta: object): PlayedAnswer['events'][number] => [
    'content_block_delta',
    { type: 'content_block_delta', index, delta },
  ];
  const frame = (contentBlockIndex: number, delta: object): PlayedAnswer['events'][number] => [
    'contentBlockDelta',
    { contentBlockIndex, delta },
  ];
  const begin = { type: 'content_block_start', index: 1, content_block: { type: 'thinking' } };

  it.each<['anthropic' | 'bedrock', piece: PlayedAnswer['events'][number], first: PlayedAnswer['events']]>([
    [
      'anthropic',
      block(1, { type: 'signature_delta', signature: piece }),
      [block(0, { type: 'text_delta', text: 'Hi' }), ['content_block_start', begin]],
    ],
    ['bedrock', frame(1, { reasoningContent: { signature: piece } }), [frame(0, { text: 'Hi' })]],
    ['bedrock', frame(1, { reasoningContent: { redactedContent: piece } }), [frame(0, { text: 'Hi' })]],
  ])('of %s -> is not held beyond what a reply may have', async (id, endless, first) => {
    const events = [...first, ...Array.from({ length: 6 }, () => endless)];
    const end: PlayedAnswer['events'] = [
      ['messageStop', { stopReason: 'end_turn' }],
      ['message_delta', { type: 'message_delta', delta: { stop_reason: 'end_turn' } }],
    ];
    const answer = { whole: '', events: [...events, ...end.slice(id === 'bedrock' ? 0 : 1).slice(0, 1)] };
    const failed = play(id, answer, { stream: true, reasoning: 'opaque' });
    await expect(failed).rejects.toMatchObject({ retryable: false, cause: { word: 'oversized' } });
  });
});
