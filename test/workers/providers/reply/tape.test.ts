import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ProviderId } from '../../../../shared/contracts/contract.js';
import type { Turn } from '../../../../shared/conversation.js';
import type { Failure } from '../../../../shared/failures.js';
import type { ModelParameters } from '../../../../shared/models/model-parameters.js';
import { type Mark, piecesOf, textOfTape } from '../../../../shared/protocol/parts.js';
import type { FinishReason, ProviderRequest } from '../../../../workers/providers/provider.js';
import { type CallPiece, Tape } from '../../../../workers/providers/reply/tape.js';
import type { OpaqueBlock } from '../../../../workers/providers/reply/tape-marks.js';
import { callsOf } from '../../../support/replies.js';

/** A text, a piece of a call, a piece of thinking, a block, or that a text begins. */
type Piece = string | CallPiece | { thinking: string } | OpaqueBlock | { isNewText: true };

interface Told {
  reason?: FinishReason;
  provider?: ProviderId;
  reasoning?: ProviderRequest['reasoning'];
  turns?: Turn[];
  parameters?: ModelParameters;
  blankAllowedFor?: FinishReason[];
}

const tools = [{ name: 'f' }, { name: 'g' }];
const usage = { inputTokens: 1, outputTokens: 2 };

/** The reply to an answer in these pieces, and the deltas that are handed out. */
function play(
  pieces: readonly Piece[],
  { reason = 'stop', provider = 'anthropic', parameters = { tools }, ...asked }: Told = {},
) {
  const deltas: [text: string, mark?: Mark][] = [];
  const { signal } = new AbortController();
  const tape = new Tape(provider, { turns: [], model: 'm', parameters, signal, ...asked }, (text, mark) => {
    if (mark) expect(mark.at).toBe(deltas.map(([before]) => before).join('').length);
    expect(text).not.toBe('');
    deltas.push(mark ? [text, mark] : [text]);
  });
  for (const piece of pieces) add(tape, piece);
  const reply = tape.end(reason, usage);
  expect(deltas.map(([text]) => text).join('')).toBe(reply.text);
  expect(deltas.flatMap(([, mark]) => mark ?? [])).toEqual(reply.marks ?? []);
  expect(new Set(reply.marks?.map(({ at }) => at)).size).toBe(reply.marks?.length ?? 0);
  return { ...reply, deltas };
}

function add(tape: Tape, piece: Piece): void {
  if (typeof piece === 'string') tape.addText(piece);
  else if ('key' in piece) tape.addCall(piece);
  else if ('thinking' in piece) tape.addThinking(piece.thinking);
  else if ('data' in piece) tape.addOpaque(piece);
  else tape.beginText();
}

const refusal = (...args: Parameters<typeof play>) => {
  try {
    play(...args);
  } catch (error) {
    const { code, retryable, facts, cause } = error as Failure;
    return { code, retryable, usage: facts.usage, word: (cause as { word?: string }).word };
  }
  return undefined;
};

const f: CallPiece = { key: 0, id: 'a', name: 'f' };
const g: CallPiece = { key: 1, id: 'b', name: 'g' };
const more = (key: number, json: string): CallPiece => ({ key, arguments: json });
const whole = { ...f, arguments: '{}' };
const toolCall = { type: 'tool_call', name: 'f', arguments: '{}' } as const;
const markF = { kind: 'call', at: 0, id: 'a', name: 'f' };
const markG = { kind: 'call', id: 'b', name: 'g' };

describe('Tape', () => {
  it('hands out the mark of a call with the first piece of its arguments that is not empty', () => {
    const { deltas } = play([f, more(0, ''), more(0, '{"x"'), more(0, ':1}')]);
    expect(deltas).toEqual([['{"x"', markF], [':1}']]);
  });

  it('gives a call without arguments those of none, when it ends', () => {
    expect(play([f, g, { ...g, arguments: '' }, 'c']).deltas).toEqual([
      ['{}', markF],
      ['{}', { ...markG, at: 2 }],
      ['c', { kind: 'text', at: 4 }],
    ]);
  });

  it('gives a call of which no piece comes the arguments that it began with', () => {
    const begun = { ...f, preset: '{"x":1}' };
    expect(play([begun, { ...g, preset: '{}' }])).toMatchObject({
      text: '{"x":1}{}',
      marks: [markF, { ...markG, at: 7 }],
    });
    expect(play([begun, more(0, '{"x":2}')]).text).toBe('{"x":2}');
    expect(refusal([{ ...f, preset: '[1]' }])).toMatchObject({ word: 'malformed_arguments' });
  });

  it.each([
    [['null'], '{}'],
    [['nu', 'll '], '{}'],
    [['""'], '{}'],
    [['"{\\"x', '\\":1}"'], '{"x":1}'],
    [[JSON.stringify(JSON.stringify('{"x":1}'))], '{"x":1}'],
    [['"null"'], '{}'],
    [[' \n', ' {"x":1}'], ' \n {"x":1}'],
  ])('makes an object of arguments that come as %j', (pieces, text) => {
    const call = [f, ...pieces.map((piece) => more(0, piece))];
    expect(play(call)).toEqual({ text, marks: [markF], deltas: [[text, markF]] });
  });

  it('marks a text that follows a call, and no other', () => {
    const { text, marks, deltas } = play(['a', 'b', whole, 'c', 'd', g, 'e']);
    expect(text).toBe('ab{}cd{}e');
    expect(marks?.map(({ kind, at }) => [kind, at])).toEqual([
      ['call', 2],
      ['text', 4],
      ['call', 6],
      ['text', 8],
    ]);
    expect(deltas.map(([piece]) => piece)).toEqual(['a', 'b', '{}', 'c', 'd', '{}', 'e']);
    expect(textOfTape({ text, marks })).toBe('abcde');
  });

  it('drops blank text before a call and behind the last, and keeps it before text', () => {
    expect(play(['\n', '\n', whole, ' ', '\n', g, '\n', 'a', '\n'])).toMatchObject({ text: '{}{}\na\n' });
    expect(play([f, ' \n'])).toMatchObject({ text: '{}', marks: [markF] });
    expect(play(['a\n', f])).toMatchObject({ text: 'a\n{}' });
  });

  it('takes blank text between the pieces of a call for none', () => {
    expect(play([{ ...f, arguments: '{' }, '\n', more(0, '}')])).toMatchObject({ text: '{}' });
  });

  it('leaves out a call that was cut before its first piece, and keeps the beginning of one cut later', () => {
    expect(play(['a', f], { reason: 'length' })).toEqual({ text: 'a', deltas: [['a']] });
    expect(play([f, { ...g, arguments: '{"x' }], { reason: 'length' })).toMatchObject({
      text: '{}{"x',
      marks: [markF, { ...markG, at: 2 }],
    });
    expect(refusal([' ', f], { reason: 'length' })).toMatchObject({ word: 'blank', retryable: false, usage });
    expect(play([f], { reason: 'length', blankAllowedFor: ['length'] })).toEqual({ text: '', deltas: [] });
  });

  it('gives a blank text only for an end that its caller asked for', () => {
    const [blank, failed] = [' \u200B', { code: 'provider_error', word: 'blank', retryable: false, usage }];
    expect(play([blank], { blankAllowedFor: ['stop'] })).toEqual({ text: blank, deltas: [[blank]] });
    expect(refusal([blank], { blankAllowedFor: ['length'] })).toEqual(failed);
    expect(refusal([], { reason: 'length' })).toEqual(failed);
  });

  it('gives a call without an id, or with one that is taken, its own', () => {
    const pieces = [undefined, '', 'a', 'a'].map((id, key) => ({ key, id, name: 'f' }));
    const ids = callsOf(play(pieces)).map(({ id }) => id);
    expect(new Set(ids).size).toBe(4);
    expect(ids[2]).toBe('a');
    for (const id of [ids[0], ids[1], ids[3]]) expect(id).toMatch(/^call_[\w-]{24}$/);
  });

  it('gives a call another id where an earlier reply has had it', () => {
    const turns: Turn[] = [{ role: 'assistant', content: [{ ...toolCall, id: 'a' }] }];
    const ids = callsOf(play([f, g], { turns })).map(({ id }) => id);
    expect(ids).toEqual([expect.stringMatching(/^call_[\w-]{24}$/), 'b']);
  });

  it('reads what is said of a call up to its first piece', () => {
    expect(play([{ key: 0, name: 'f' }, f, { ...whole, name: 'g' }]).marks).toEqual([markF]);
  });

  describe('with calls that come in turns', () => {
    const at = (place: number) => ({ ...markG, at: place });

    it('hands out the first as it comes, and the second behind it', () => {
      const { deltas } = play([f, more(0, '{"x"'), g, more(1, '{"y"'), more(0, ':1}'), more(1, ':2}')]);
      expect(deltas).toEqual([['{"x"', markF], [':1}'], ['{"y":2}', at(7)]]);
    });

    it('hands out the second as it comes where the first has all of its arguments', () => {
      const pieces = [whole, { ...g, arguments: '{"y"' }, more(0, ' '), more(1, ':2}')];
      expect(play(pieces).deltas).toEqual([['{}', markF], ['{"y"', at(2)], [':2}']]);
    });

    it('hands out the second as it comes where the provider says that the first has ended', () => {
      const ends = [0, 9].map((key) => ({ key, isEnded: true }));
      const { deltas } = play([f, ...ends, g, more(1, '{"y"'), more(1, ':2}')]);
      expect(deltas).toEqual([['{}', markF], ['{"y"', at(2)], [':2}']]);
    });

    it('keeps a text between the pieces of a call, blanks and all, behind it', () => {
      const pieces = [{ ...f, arguments: '{"x"' }, 'a', ' ', more(0, ':1}'), 'b', g, '\n', 'c'];
      const { text, marks } = play(pieces);
      expect(text).toBe('{"x":1}a b{}\nc');
      expect(marks).toEqual([markF, { kind: 'text', at: 7 }, at(10), { kind: 'text', at: 12 }]);
    });

    it('keeps what the token limit has cut as far as it came', () => {
      const pieces = [{ ...f, arguments: '{"x' }, { ...g, arguments: '{"y' }, more(0, '":1')];
      expect(play(pieces, { reason: 'length' })).toMatchObject({ text: '{"x":1{"y', marks: [markF, at(6)] });
      expect(play([{ ...f, arguments: '"{' }], { reason: 'length' })).toMatchObject({ text: '"{' });
      expect(play([{ ...f, preset: '{"x":1}' }], { reason: 'length' })).toMatchObject({ text: '{"x":1}' });
    });

    it('keeps what was blocked as far as it was handed out', () => {
      expect(play([f], { reason: 'blocked' })).toEqual({ text: '', deltas: [] });
      expect(play([{ ...f, arguments: '{' }, whole, g, 'a'], { reason: 'blocked' }).text).toBe('{{}');
    });

    it('gives each call its own arguments, however their pieces are mixed', () => {
      const keys = [0, 1, 2];
      const jsonOf = (key: number) => JSON.stringify({ key, said: '{"}'.repeat(key), list: [{}, []] });
      const mix = fc.array(fc.tuple(fc.constantFrom(...keys), fc.integer({ min: 1, max: 9 })), {
        maxLength: 40,
      });
      fc.assert(
        fc.property(mix, fc.shuffledSubarray(keys, { minLength: 3 }), fc.boolean(), (turns, order, says) => {
          const left = new Map(keys.map((key) => [key, jsonOf(key)]));
          const begun = order.map((key) => ({ key, id: `id${key}`, name: 'f' }));
          const rest = order.map((key): [number, number] => [key, 99]);
          const pieces = [...turns, ...rest].flatMap(([key, length]): Piece[] => {
            const json = left.get(key) ?? '';
            left.set(key, json.slice(length));
            return [more(key, json.slice(0, length)), ...(says ? ['a'] : [])];
          });
          const reply = play([...begun, ...pieces]);
          const calls = callsOf(reply);
          expect(calls.map(({ id, arguments: json }) => [id, json])).toEqual(
            order.map((key) => [`id${key}`, jsonOf(key)]),
          );
          expect(textOfTape(reply)).toBe('a'.repeat(says ? pieces.length / 2 : 0));
        }),
      );
    });
  });

  describe('with thinking and opaque blocks', () => {
    const [one, two, three] = [{ data: '{"a":1}' }, { data: '{"b":[2]}' }, { data: '{"c":"“ß”"}' }];
    const [thought, newText] = [{ thinking: 'Hm' }, { isNewText: true }] as const;
    const [both, opaque] = [{ reasoning: 'shown' }, { reasoning: 'opaque' }] as const;
    /** The pieces of a reply, each with its kind. */
    const said = (reply: Parameters<typeof piecesOf>[0]) =>
      piecesOf(reply).map((piece) =>
        piece.kind === 'call'
          ? [piece.name, piece.arguments]
          : [piece.kind, piece.kind === 'opaque' ? piece.data : piece.text],
      );

    it('is asked for neither → the texts alone, byte for byte', () => {
      const pieces = ['\n', thought, one, newText, 'a', two, ' ', newText, 'b', thought];
      expect(play(pieces)).toEqual({ text: '\na b', deltas: [['\na'], [' '], ['b']] });
    });

    it('is asked for neither, and calls → the calls alone', () => {
      const { text, marks } = play([thought, one, two, whole, three, g]);
      expect([text, marks?.length]).toEqual(['{}{}', 2]);
    });

    it('is asked for both → each is in its place, a block with its length and who wrote it', () => {
      const pieces = [{ thinking: '' }, thought, { thinking: '!' }, one, newText, 'a', one, whole, 'b'];
      const { text, marks } = play(pieces, both);
      expect(text).toBe(`Hm!${one.data}a${one.data}{}b`);
      const { length } = one.data;
      const block = { kind: 'opaque', length, provider: 'anthropic', model: 'm', role: 'block' };
      expect(marks).toEqual([
        { kind: 'thinking', at: 0 },
        { ...block, at: 3 },
        { kind: 'text', at: 3 + length },
        { ...block, at: 4 + length },
        { ...markF, at: 4 + 2 * length },
        { kind: 'text', at: 6 + 2 * length },
      ]);
    });

    it('is asked for blocks alone → no thinking', () => {
      const { text, marks } = play([thought, { ...one, role: 'end' }, 'a'], opaque);
      expect([text, marks?.[0]]).toEqual([`${one.data}a`, expect.objectContaining({ role: 'end', at: 0 })]);
    });

    it('thinks twice in a row → two thoughts', () => {
      const pieces = [thought, { thinking: '' }, thought, 'a'];
      expect(said(play(pieces, both))).toEqual([
        ['thinking', 'Hm'],
        ['thinking', 'Hm'],
        ['text', 'a'],
      ]);
    });

    it('has two texts in a row → apart once there is a mark, and one text before', () => {
      expect(said(play([one, 'a', newText, 'b'], opaque)).slice(1)).toEqual([
        ['text', 'a'],
        ['text', 'b'],
      ]);
      expect(play(['a', newText, 'b'], opaque)).toEqual({ text: 'ab', deltas: [['a'], ['b']] });
    });

    it('has them between the pieces of a call → behind it, in their order', () => {
      const pieces = [{ ...f, arguments: '{"x"' }, thought, one, 'a', newText, 'b', more(0, ':1}'), two, g];
      expect(said(play(pieces, both))).toEqual([
        ['f', '{"x":1}'],
        ['thinking', 'Hm'],
        ['opaque', one.data],
        ['text', 'a'],
        ['text', 'b'],
        ['opaque', two.data],
        ['g', '{}'],
      ]);
    });

    it('has nothing else → blank', () => {
      const failed = { word: 'blank', retryable: false };
      expect(refusal([thought, one, ' '], both)).toMatchObject(failed);
      expect(refusal([thought, one, f], { ...both, reason: 'length' })).toMatchObject(failed);
      const mayBeBlank = play([thought, one, ' '], { ...both, blankAllowedFor: ['stop'] });
      expect(textOfTape(mayBeBlank)).toBe(' ');
    });

    it('has a format → that of the text alone', () => {
      const asked = { ...both, parameters: { format: { type: 'json_object' } } } as const;
      expect(textOfTape(play([thought, one, '{"a"', two, ':1}'], asked))).toBe('{"a":1}');
      expect(refusal([one, 'a'], asked)).toMatchObject({ word: 'malformed_json' });
    });

    it('has more than 1 MiB of blocks → those before, and no later one', () => {
      const large = { data: `{"a":"${'x'.repeat(1_048_568)}"}` };
      expect(said(play([large, one, two, 'a'], opaque))).toEqual([
        ['opaque', large.data],
        ['text', 'a'],
      ]);
      expect(said(play([one, large, two, 'a'], opaque)).map(([kind]) => kind)).toEqual(['opaque', 'text']);
    });

    it('has thousands of parts → no more of them than readers look through, and all of the text', () => {
      const pieces = Array.from({ length: 3000 }, () => [thought, one, newText, 'a']).flat();
      const { text, marks } = play([...pieces, whole], both);
      expect([marks?.length, textOfTape({ text, marks })]).toEqual([2002, 'a'.repeat(3000)]);
      const behind = Array.from({ length: 10_001 }, () => 'a');
      expect(refusal([{ ...f, arguments: '{' }, ...behind])).toMatchObject({ word: 'interleaved_calls' });
    });

    it('has other fields of a call → on its mark, where they are asked for and have room', () => {
      const called = (extra: string) => [{ ...whole, extra }];
      expect(play(called('{"a":1}'), opaque).marks).toEqual([{ ...markF, extra: '{"a":1}' }]);
      expect(play(called('x'.repeat(47_999)), opaque).marks).toEqual([markF]);
      expect(play(called('{"a":1}')).marks).toEqual([markF]);
    });

    const open = { ...g, arguments: '{"y"' };
    const kinds: Piece[] = ['a', ' ', 'b c', { thinking: '' }, thought, newText, one, two, f, open];
    it('has them in any order → the same texts and calls as without them, but for blanks', () => {
      const tell = (pieces: Piece[], asked?: Told) => {
        try {
          const reply = play(pieces, asked);
          return [textOfTape(reply).replaceAll(' ', ''), callsOf(reply).map((call) => call.arguments)];
        } catch (error) {
          return (error as Failure).cause;
        }
      };
      fc.assert(
        fc.property(fc.array(fc.constantFrom(...kinds)), fc.constantFrom(both, opaque), (drawn, asked) => {
          const begun = drawn.map(
            (piece, key): Piece =>
              typeof piece === 'object' && 'key' in piece ? { ...piece, key, id: `id${key}` } : piece,
          );
          const rest = drawn.flatMap((piece, key) => (piece === open ? [more(key, ':1}')] : []));
          const pieces = [...begun, ...rest];
          const plain = pieces.filter((piece) => typeof piece === 'string' || 'key' in piece);
          expect(tell(pieces, asked)).toEqual(tell(plain));
        }),
      );
    });
  });

  const many = (count: number) => Array.from({ length: count }, (_, key): CallPiece => ({ key, name: 'f' }));
  it('takes as many calls as a reply may have', () => {
    expect(play(many(128)).marks).toHaveLength(128);
  });

  it.each<[string, string, Piece[], ModelParameters?]>([
    ['a tool that was not offered', 'unknown_tool', [{ ...f, name: 'h', arguments: '{}' }]],
    ['a tool where none was offered', 'unknown_tool', [f], {}],
    ['a call where the choice is none', 'unknown_tool', [f], { tools, toolChoice: 'none' }],
    ['a call without a name', 'nameless_call', [more(0, '{}')]],
    ['more than 128 calls', 'too_many_calls', many(129)],
    ['a piece of a call that has ended', 'interleaved_calls', [whole, g, more(0, '{}')]],
    ['a piece of a call that ended before a text', 'interleaved_calls', [whole, 'a', more(0, '{}')]],
    ['arguments that are no JSON', 'malformed_arguments', [{ ...f, arguments: '{"x' }]],
    ...['[]', '7', 'true', '"x"', '"[1]"', ' ', 'nul', '{}{}'].map((text): [string, string, Piece[]] => [
      `arguments such as ${text}`,
      'malformed_arguments',
      [{ ...f, arguments: text }],
    ]),
  ])('refuses %s', (_, word, pieces, parameters = { tools }) => {
    expect(refusal(pieces, { parameters })).toMatchObject({ code: 'provider_error', retryable: true, word });
  });

  it('knows the tokens of a reply that it refuses at its end', () => {
    expect(refusal([{ ...f, arguments: '{' }])).toMatchObject({ usage });
  });

  describe('with a format', () => {
    const format = { type: 'json_object' } as const;
    it.each<[string, Piece[], Told?]>([
      ['JSON', ['{"a"', ':1}\n']],
      ['a call in its place', ['Look:', f]],
      ['a beginning that the token limit cut', ['{"a'], { reason: 'length' }],
      ['a beginning that ends before a text to stop at', ['{"a'], { parameters: { format, stop: ['x'] } }],
    ])('takes %s', (_, pieces, told) => {
      expect(refusal(pieces, { parameters: { format, tools }, ...told })).toBeUndefined();
    });

    it('refuses a text that is no JSON', () => {
      const malformed = { code: 'provider_error', word: 'malformed_json', retryable: true, usage };
      expect(refusal(['{"a'], { parameters: { format } })).toMatchObject(malformed);
    });
  });
});
