import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Turn } from '../../../shared/contract.js';
import { isBlank } from '../../../shared/conversation.js';
import { continuation, speakSystemOnly, toAlternating } from '../../../workers/providers/message-shaping.js';

const turn = (role: Turn['role'], content: string): Turn => ({ role, content });

describe('toAlternating', () => {
  it('joins runs of one role by a blank line, also across a system text', () => {
    const turns = [turn('user', 'a '), turn('system', 'b'), turn('user', ' c')];
    expect(toAlternating(turns)).toEqual({ system: 'b', turns: [turn('user', 'a \n\n c')] });
  });

  it('gives the providers what they demand and loses no text of any conversation', () => {
    fc.assert(
      fc.property(conversations, (turns) => {
        const { system, turns: reshaped } = toAlternating(turns);
        expect(reshaped.map(({ role }) => role)).toEqual(
          reshaped.map((_, place) => (place % 2 === 0 ? 'user' : 'assistant')),
        );
        expect(reshaped.length % 2).toBe(1);
        expect([system ?? 'none', ...reshaped.map(({ content }) => content)].some(isBlank)).toBe(false);
        expect(textOf(reshaped)).toBe(
          textOf(framed(speakSystemOnly(turns).filter(({ role }) => role !== 'system'))),
        );
        expect(system).toBe(systemOf(turns));
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

const textOf = (turns: readonly { content: string }[]) => turns.map(({ content }) => content).join('\n\n');

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
