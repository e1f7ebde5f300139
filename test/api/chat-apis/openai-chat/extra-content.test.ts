import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { toChatCompletion } from '../../../../api/chat-apis/openai-chat/completion.js';
import type { ProviderId } from '../../../../shared/contracts/contract.js';
import type { Mark } from '../../../../shared/protocol/parts.js';
import { readBody, refusalOf } from '../../../support/completion-bodies.js';

/** A text, a call, or a block. */
type Piece = string | { call: string } | object;

const [a, b, c] = [{ call: 'a' }, { call: 'b' }, { call: 'c' }];
const [one, two, three] = [{ n: 1 }, { n: [2, '“ß”'] }, { n: 3 }];

/** A reply of these pieces, as it stands on the tape. */
function tapeOf(pieces: readonly Piece[], provider: ProviderId) {
  const marks: Mark[] = [];
  let text = '';
  for (const piece of pieces) {
    const at = text.length;
    if (typeof piece === 'string') {
      if (at > 0) marks.push({ kind: 'text', at });
      text += piece;
    } else if ('call' in piece) {
      marks.push({ kind: 'call', at, id: String(piece.call), name: 'weather' });
      text += '{}';
    } else {
      text += JSON.stringify(piece);
      const length = text.length - at;
      marks.push({ kind: 'opaque', at, length, provider, model: 'm', role: 'block' });
    }
  }
  return { text, marks };
}

const resultOf = (id: string) => ({ role: 'tool', tool_call_id: id, content: 'x' });

/** The message of a client that has got a reply of these pieces, and the results of its calls. */
function messagesOf(pieces: readonly Piece[], provider: ProviderId) {
  const head = { id: 'x', created: 1, provider, model: `${provider}/m`, isFlex: false };
  const tape = tapeOf(pieces, provider);
  const { choices } = toChatCompletion(head, { kind: 'ok', model: 'm', queueMs: 0, providerMs: 0, ...tape });
  const message = choices[0]?.message;
  const results = (message?.tool_calls ?? []).map(({ id }) => resultOf(id));
  return [message, ...results];
}

const returned = (pieces: readonly Piece[], provider: ProviderId) =>
  readBody({ messages: messagesOf(pieces, provider) }, provider).turns[0]?.content;

/** These pieces as parts of a turn. */
const partsOf = (pieces: readonly Piece[], provider: ProviderId) =>
  pieces.map((piece) => {
    if (typeof piece === 'string') return { type: 'text', text: piece };
    if ('call' in piece) return { type: 'tool_call', id: piece.call, name: 'weather', arguments: '{}' };
    const role = 'phase' in piece ? { role: 'start' } : {};
    return { type: 'opaque', provider, model: 'm', data: JSON.stringify(piece), ...role };
  });

describe('a reply with blocks that its client sends back', () => {
  const phase = { phase: 'commentary' };
  const signed = { thoughtSignature: 'AAAA', of: 'call' };
  const ofText = { thoughtSignature: 'BBBB', of: 'text' };

  it.each<[ProviderId, Piece[], Piece[]?]>([
    ['anthropic', [one, a]],
    ['bedrock', [one, two, 'Look', a]],
    ['openai', [phase, 'Look', one, two, a]],
    ['anthropic', ['Hi', one, 'Look', 'here', two, 'so', a]],
    ['bedrock', [one, a, two, b, c]],
    ['anthropic', [one, 'x', a, 'y🎉', two, 'z', b, three, c]],
    ['openai', ['x', a, 'y', one, b]],
    // A client has one text, and no place behind the last call.
    ['anthropic', [one, 'x', 'y', a, 'z'], [one, 'xyz', a]],
    ['anthropic', [one, a, 'y', b, two, c], [one, 'y', a, b, two, c]],
    ['anthropic', [one, ' ', two, a], [one, two, a]],
    ['vertexai', ['Hi', signed, a, b, signed, c]],
    ['vertexai', ['Hi', ofText, a], ['Hi', a]],
    ['openai', ['Hi', one], ['Hi']],
  ])('given %s, %j → they are in their places', (provider, pieces, expected = pieces) => {
    const parts = partsOf(expected, provider);
    expect(returned(pieces, provider)).toEqual(parts.length === 1 ? 'Hi' : parts);
  });

  it('given any reply with a block before each of its calls → they are in their places', () => {
    const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 5 }).map((said) => `x${said}`);
    const block = fc.jsonValue().map((value) => ({ value }));
    const group = fc
      .tuple(fc.array(fc.oneof(text, block)), block, fc.option(text))
      .map(([before, last, said]) => [...before, last, ...(said === null ? [] : [said])]);
    fc.assert(
      fc.property(fc.array(group, { minLength: 1, maxLength: 3 }), (groups) => {
        const pieces = groups.flatMap((each, n): Piece[] => [...each, { call: `${n}` }]);
        expect(returned(pieces, 'anthropic')).toEqual(partsOf(pieces, 'anthropic'));
      }),
    );
  });
});

describe('blocks that a client has changed', () => {
  const call = (id: string, extra_content: object) => ({
    ...{ id, type: 'function', function: { name: 'weather', arguments: '{}' } },
    extra_content,
  });
  const thinking = (signed_thinking: string) => ({ anthropic: { signed_thinking, model: 'm' } });
  const messages = (content: string, ...extras: object[]) => [
    { role: 'assistant', content, tool_calls: extras.map((extra, n) => call(`${n}`, extra)) },
    ...extras.map((_, n) => resultOf(`${n}`)),
  ];
  const place = (length: unknown) => JSON.stringify([one, { type: 'text', length }, two]);

  it.each(['x', '{}', 'null', '[1]', '[[]]', '[null]', place('1'), place(-1), place(1.5), place(undefined)])(
    'given %s → all of the message are left out, and the text stays',
    (changed) => {
      const [turn] = readBody({ messages: messages('Hi', thinking('[{}]'), thinking(changed)) }).turns;
      expect(turn?.content).toMatchObject([{ text: 'Hi' }, { type: 'tool_call' }, { type: 'tool_call' }]);
    },
  );

  it.each([
    [2, 'Hi there', 'Hi', ' there'],
    [99, 'Hi', 'Hi', undefined],
    [0, 'Hi', undefined, 'Hi'],
  ])(
    'given a text longer or shorter than its place, %i → all of it is there',
    (length, said, before, after) => {
      const [turn] = readBody({ messages: messages(said, thinking(place(length))) }).turns;
      const textOf = (text: string | undefined) => (text === undefined ? [] : [{ type: 'text', text }]);
      const [opaque, called] = [{ type: 'opaque' }, { type: 'tool_call' }];
      expect(turn?.content).toMatchObject([opaque, ...textOf(before), opaque, ...textOf(after), called]);
    },
  );

  it.each([{ openai: { reasoning: '[{}]' } }, { anthropic: { signed_thinking: '[{}]' } }])(
    'given no model, %j → left out',
    (extra) => {
      const [turn] = readBody({ messages: messages('', extra) }).turns;
      expect(turn?.content).toMatchObject([{ type: 'tool_call' }]);
    },
  );

  it('given no model of Gemini, whose own field has none → kept', () => {
    const google = { google: { thought_signature: 'AAAA' } };
    const [turn] = readBody({ messages: messages('', google) }).turns;
    expect(turn?.content).toMatchObject([
      { data: '{"thoughtSignature":"AAAA","of":"call"}' },
      { type: 'tool_call' },
    ]);
  });

  it.each([
    ['1/extra_content nests deeper than 128 levels', '['.repeat(129)],
    ['1/extra_content and those before it have more than 20000 values', `[${'{},'.repeat(12_000)}{}]`],
    ['1/extra_content/anthropic/signed_thinking must be at most 2097152 characters', 'x'.repeat(2_097_153)],
  ])('given more than is parsed → refused: %s', (reason, json) => {
    const refused = refusalOf({ messages: messages('', thinking('[{}]'), thinking(json)) });
    expect(refused).toBe(`/messages/0/tool_calls/${reason}`);
  });
});
