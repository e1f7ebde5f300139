import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isBlank, type Part, partsOf, type Turn, textOf } from '../../../shared/conversation.js';
import {
  type AlternatingTurn,
  changesFor,
  continuation,
  markSystem,
  toAlternating,
} from '../../../shared/protocol/alternating-turns.js';

const turn = (role: Turn['role'], content: Turn['content']): Turn => ({ role, content });
const text = (said: string): Part => ({ type: 'text', text: said });
const call = (id: string): Part => ({ type: 'tool_call', id, name: 'look', arguments: '{}' });
const result = (callId: string): Part => ({ type: 'tool_result', callId, content: 'seen' });
const image: Part = { type: 'image', url: 'https://example.org/a.png' };
const marked = (said: string): Part => text(markSystem(said));

describe('toAlternating, of parts', () => {
  const opaque: Part = { type: 'opaque', provider: 'anthropic', data: '[]' };

  it.each<[string, Turn[], Turn[], string[]]>([
    [
      'puts the results of all calls into one turn, in their order, before texts and images',
      [
        turn('user', 'Hello'),
        turn('assistant', [text('Well'), opaque, call('a'), call('b')]),
        turn('user', [image, result('b')]),
        turn('system', 'Be brief.'),
        turn('user', [result('a')]),
        turn('user', 'And?'),
      ],
      [
        turn('user', 'Hello'),
        turn('assistant', [text('Well'), opaque, call('a'), call('b')]),
        turn('user', [result('a'), result('b'), image, marked('Be brief.'), text('And?')]),
      ],
      ['marked-system', 'results-first'],
    ],
    [
      'ends with results as with any turn of the user',
      [turn('assistant', [call('a')]), turn('user', [result('a')])],
      [turn('user', continuation), turn('assistant', [call('a')]), turn('user', [result('a')])],
      ['continued'],
    ],
    [
      'orders results by the calls just before them',
      [
        ...[turn('user', 'Hello'), turn('assistant', [call('a'), call('b')])],
        ...[turn('user', [result('a'), result('b')]), turn('assistant', [call('b'), call('a')])],
        turn('user', [result('a'), result('b')]),
      ],
      [
        ...[turn('user', 'Hello'), turn('assistant', [call('a'), call('b')])],
        ...[turn('user', [result('a'), result('b')]), turn('assistant', [call('b'), call('a')])],
        turn('user', [result('b'), result('a')]),
      ],
      ['results-first'],
    ],
    [
      'keeps texts of one role as parts, and leaves blank ones out',
      [
        ...[turn('user', 'a'), turn('user', [text('b'), text(' \n'), image, text('c')])],
        ...[turn('assistant', [text('')]), turn('user', 'd')],
      ],
      [turn('user', [text('a'), text('b'), image, text('c'), text('d')])],
      ['dropped-blank'],
    ],
  ])('%s', (_, turns, reshaped, changes) => {
    const before = structuredClone(turns);
    expect(toAlternating(turns)).toEqual({ system: [], turns: reshaped, changes });
    expect(turns).toEqual(before);
  });

  it('joins the texts of one system turn', () => {
    const turns = [turn('system', [text('a'), text('b')]), turn('user', 'c')];
    expect(toAlternating(turns)).toEqual({ system: ['ab'], turns: [turn('user', 'c')], changes: [] });
  });
});

const system = (content: string) => turn('system', content);
const [hello, hi] = [turn('user', 'Hello'), turn('assistant', 'Hi')];
const [called, seen] = [turn('assistant', [call('a')]), turn('user', [result('a')])];

describe('toAlternating, of system texts', () => {
  it.each<[string, Turn[], Turn[], string[]?]>([
    ['at the end -> in the turn before', [hello, system('a')], [turn('user', [text('Hello'), marked('a')])]],
    [
      'between turns of the user -> between their parts',
      [hello, system('a'), hello],
      [turn('user', [text('Hello'), marked('a'), text('Hello')])],
    ],
    [
      'between assistant and user -> first in the turn',
      [hello, hi, system('a'), hello],
      [hello, hi, turn('user', [marked('a'), text('Hello')])],
    ],
    [
      'between turns of the assistant, and behind the last -> turns of their own, and no other is added',
      [hello, hi, system('a'), hi, system('b')],
      [hello, hi, turn('user', markSystem('a')), hi, turn('user', markSystem('b'))],
    ],
  ])('%s', (_, turns, reshaped) => {
    expect(toAlternating(turns)).toEqual({ system: [], turns: reshaped, changes: ['marked-system'] });
  });

  it('at the beginning -> the system prompt, each by itself, and no change', () => {
    const shaped = { system: ['a', 'b'], turns: [hello], changes: [] };
    expect(toAlternating([system('a'), system('b'), hello])).toEqual(shaped);
  });

  it('alone -> the system prompt, and a turn that is added', () => {
    const added = { turns: [turn('user', continuation)], changes: ['continued'] };
    expect(toAlternating([system('a')])).toEqual({ system: ['a'], ...added });
  });
});

describe('toAlternating, where system texts stay in their places', () => {
  it.each<[string, Turn[], AlternatingTurn[], string[]]>([
    ['at the end', [hello, system('a')], [{ ...hello, system: ['a'] } as AlternatingTurn], []],
    [
      'between user and assistant',
      [hello, system('a'), system('b'), hi, hello],
      [{ ...hello, system: ['a', 'b'] }, hi, hello] as AlternatingTurn[],
      [],
    ],
    [
      'behind results',
      [hello, called, seen, system('a')],
      [hello, called, { ...seen, system: ['a'] }] as AlternatingTurn[],
      [],
    ],
    [
      'before a turn of the user: marked',
      [hello, system('a'), hello, system('b'), hi, system('c'), hello],
      [
        { ...turn('user', [text('Hello'), marked('a'), text('Hello')]), system: ['b'] },
        ...[hi, turn('user', [marked('c'), text('Hello')])],
      ] as AlternatingTurn[],
      ['marked-system'],
    ],
  ])('%s', (_, turns, reshaped, changes) => {
    expect(toAlternating(turns, { keepsSystem: true })).toEqual({ system: [], turns: reshaped, changes });
  });
});

const conversations = fc.array(
  fc.record({
    role: fc.constantFrom('system', 'user', 'assistant'),
    content: fc
      .oneof(fc.string({ unit: 'binary' }), fc.constantFrom(continuation, ' a\n', '\n\na\n\n'))
      .filter((content) => !isBlank(content)),
  }),
  { minLength: 1, maxLength: 30 },
);

/** All texts with who says them, in the order in which the model reads them. */
const readBy = ({ system: first, turns }: ReturnType<typeof toAlternating>) => [
  ...first.map((said) => ['system', said]),
  ...turns.flatMap(({ system: behind = [], ...own }) => [
    ...partsOf(own).map((part) => [own.role, part.type === 'text' ? part.text : '']),
    ...behind.map((said) => ['system', said]),
  ]),
];

/** The changes by which what is read differs from what was given; throws where it does in another way. */
function compare(given: readonly Turn[], read: readonly (readonly string[])[]): Set<string> {
  const found = new Set<string>();
  const left = [...given];
  for (const [role, said] of read) {
    const [next] = left;
    const isSame = next?.role === role && next?.content === said;
    const isMarked = next?.role === 'system' && role === 'user' && said === markSystem(textOf(next));
    if (isSame || isMarked) left.shift();
    else expect([role, said]).toEqual(['user', continuation]);
    if (!isSame) found.add(isMarked ? 'marked-system' : 'continued');
  }
  expect(left).toEqual([]);
  return found;
}

describe.each([false, true])('toAlternating of any conversation, keepsSystem %s', (keepsSystem) => {
  it('alternates, and has each text once, in order and byte for byte, beside the changes that it lists', () => {
    fc.assert(
      fc.property(conversations, (given) => {
        const shaped = toAlternating(given, { keepsSystem });
        expect(shaped.turns.length % 2).toBe(1);
        for (const [place, { role }] of shaped.turns.entries())
          expect(role).toBe(place % 2 === 0 ? 'user' : 'assistant');
        const found = compare(given, readBy(shaped));
        expect(shaped.changes).toEqual(['marked-system', 'continued'].filter((name) => found.has(name)));
      }),
    );
  });

  it('a reply and more turns follow -> what a model has read stays as it was', () => {
    fc.assert(
      fc.property(conversations, (given) => {
        const turns = [hello, ...given];
        const whole = toAlternating(turns, { keepsSystem });
        for (const [place, { role }] of turns.entries()) {
          if (role !== 'assistant' || turns[place - 1]?.role === 'assistant') continue;
          const before = toAlternating(turns.slice(0, place), { keepsSystem });
          expect(whole.turns.slice(0, before.turns.length)).toEqual(before.turns);
        }
      }),
    );
  });
});

describe('changesFor', () => {
  const told = [hello, system('a'), hello, hi];
  it.each([
    ['openai', told, []],
    ['anthropic', told, ['marked-system', 'continued']],
    ['bedrock', told, ['marked-system', 'continued']],
    ['vertexai', told, ['marked-system', 'continued']],
    ['anthropic', [hello, system('a')], []],
    ['bedrock', [hello, system('a')], ['marked-system']],
    ['vertexai', [system('a')], ['continued']],
    ['openai', [system('a')], []],
  ] as const)('%s', (provider, turns, changes) => {
    expect(changesFor(provider, turns)).toEqual(changes);
  });
});
