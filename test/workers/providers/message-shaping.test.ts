import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isBlank, type Part, type Turn } from '../../../shared/conversation.js';
import { continuation, speakSystemOnly, toAlternating } from '../../../workers/providers/message-shaping.js';

const turn = (role: Turn['role'], content: Turn['content']): Turn => ({ role, content });

describe('toAlternating', () => {
  it('gives the providers what they demand and loses no text of any conversation', () => {
    fc.assert(
      fc.property(conversations, (turns) => {
        const { system, turns: reshaped } = toAlternating(turns);
        expect(reshaped.map(({ role }) => role)).toEqual(
          reshaped.map((_, place) => (place % 2 === 0 ? 'user' : 'assistant')),
        );
        expect(reshaped.length % 2).toBe(1);
        expect([system ?? 'none', ...reshaped.map(({ content }) => content)].map(String).some(isBlank)).toBe(
          false,
        );
        expect(textOf(reshaped)).toBe(
          textOf(framed(speakSystemOnly(turns).filter(({ role }) => role !== 'system'))),
        );
        expect(system).toBe(systemOf(turns));
      }),
    );
  });
});

const text = (said: string): Part => ({ type: 'text', text: said });
const call = (id: string): Part => ({ type: 'tool_call', id, name: 'look', arguments: '{}' });
const result = (callId: string): Part => ({ type: 'tool_result', callId, content: 'seen' });
const image: Part = { type: 'image', url: 'https://example.org/a.png' };
const opaque: Part = { type: 'opaque', provider: 'anthropic', data: '[]' };

describe('toAlternating, of parts', () => {
  it.each<[string, Turn[], Turn[]]>([
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
        turn('user', [result('a'), result('b'), image, text('And?')]),
      ],
    ],
    [
      'ends with results as with any turn of the user',
      [turn('assistant', [call('a')]), turn('user', [result('a')])],
      [turn('user', continuation), turn('assistant', [call('a')]), turn('user', [result('a')])],
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
    ],
    [
      'joins texts that meet by a blank line, and leaves blank ones out',
      [
        ...[turn('user', 'a'), turn('user', [text('b'), text(' \n'), image, text('c')])],
        ...[turn('assistant', [text('')]), turn('user', 'd')],
      ],
      [turn('user', [text('a\n\nb'), image, text('c\n\nd')])],
    ],
  ])('%s', (_, turns, reshaped) => {
    const before = structuredClone(turns);
    expect(toAlternating(turns).turns).toEqual(reshaped);
    expect(turns).toEqual(before);
  });

  it('joins the texts of system turns', () => {
    const turns = [turn('system', [text('a'), text('b')]), turn('user', 'c')];
    expect(toAlternating(turns)).toEqual({ system: 'ab', turns: [turn('user', 'c')] });
  });
});

describe('toAlternating, with system texts in their places', () => {
  const system = (content: string) => turn('system', content);
  const [hello, hi] = [turn('user', 'Hello'), turn('assistant', 'Hi')];
  const added = (text: string) => ({ ...turn('user', continuation), system: text });
  it.each<[string, Turn[], { system?: string; turns: object[] }]>([
    [
      'before all others -> at the top',
      [system('a'), system('b'), hello],
      { system: 'a\n\nb', turns: [hello] },
    ],
    ['alone -> as those of the user', [system('a')], { turns: [turn('user', 'a')] }],
    ['at the end -> behind the user', [hello, system('a')], { turns: [{ ...hello, system: 'a' }] }],
    [
      'between user and assistant -> there, joined',
      [hello, system('a'), system('b'), hi, hello],
      { turns: [{ ...hello, system: 'a\n\nb' }, hi, hello] },
    ],
    [
      'before a turn of the user -> behind it, and behind results',
      [hello, turn('assistant', [call('a')]), system('a'), turn('user', [result('a')]), system('b'), hello],
      {
        turns: [
          ...[hello, turn('assistant', [call('a')])],
          { ...turn('user', [result('a'), text('Hello')]), system: 'a\n\nb' },
        ],
      },
    ],
    [
      'between turns of the assistant, and behind the last -> behind a turn that is added',
      [hello, hi, system('a'), hi, system('b')],
      { turns: [hello, hi, added('a'), hi, added('b')] },
    ],
  ])('%s', (_, turns, reshaped) => {
    expect(toAlternating(turns, { keepsSystem: true })).toEqual(reshaped);
  });

  it('a reply and more turns follow -> what a model has read stays as it was', () => {
    fc.assert(
      fc.property(conversations, ([first = hello, ...others]) => {
        const turns = [first.role === 'system' ? hello : first, ...others];
        const whole = toAlternating(turns, { keepsSystem: true });
        for (const [place, { role }] of turns.entries()) {
          if (role !== 'assistant' || place === 0 || turns[place - 1]?.role === 'assistant') continue;
          const before = toAlternating(turns.slice(0, place), { keepsSystem: true });
          expect(whole.system).toBe(before.system);
          expect(whole.turns.slice(0, before.turns.length)).toEqual(before.turns);
        }
        expect(
          [whole.system ?? [], ...whole.turns.map((each) => each.system ?? [])].flat().join('\n\n'),
        ).toBe(textOf(turns.filter(({ role }) => role === 'system')));
      }),
    );
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

const textOf = (turns: readonly Pick<Turn, 'content'>[]) => turns.map(({ content }) => content).join('\n\n');

/** The user turns an adapter adds at either end. */
function framed(turns: readonly Turn[]): Turn[] {
  const added = turn('user', continuation);
  return [
    ...(turns.at(0)?.role === 'user' ? [] : [added]),
    ...turns,
    ...(turns.at(-1)?.role === 'user' ? [] : [added]),
  ];
}

function systemOf(turns: readonly Turn[]): string | undefined {
  const texts = turns.filter(({ role }) => role === 'system');
  return texts.length === 0 || texts.length === turns.length ? undefined : textOf(texts);
}
