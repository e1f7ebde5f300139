import { describe, expect, it } from 'vitest';
import type { Message } from '../../shared/contracts/contract.js';
import { isBlank, toTurns } from '../../shared/conversation.js';

describe('toTurns', () => {
  it('takes a missing role for the user', () => {
    expect(toTurns([{ content: 'Hello' }])).toEqual([{ role: 'user', content: 'Hello' }]);
  });

  it('drops blank messages and keeps the order and the bytes of the others', () => {
    const messages = [
      { content: ' one\r\n' },
      {},
      { role: 'system', content: '\u200B' },
      { content: '\uFEFFtwo' },
    ] as const;
    expect(toTurns(messages).map((turn) => turn.content)).toEqual([' one\r\n', '\uFEFFtwo']);
  });

  it.each<[string, ...Message[]]>([
    ['no messages'],
    ['an empty message', {}],
    ['a message without content', { role: 'user' }],
    ['an empty text', { content: '' }],
    ['white space', { content: ' \t\r\n' }],
    [
      'blanks of Unicode, a byte order mark, and what has no width',
      { content: '\u00A0\u3000\uFEFF\u200B\u2060' },
    ],
    ['control characters', { content: '\u0000\u001C\u001F\u0085' }],
    [
      'blanks in every role',
      ...(['system', 'user', 'assistant'] as const).map((role) => ({ role, content: ' ' })),
    ],
  ])('leaves nothing of: %s', (_, ...messages) => {
    expect(toTurns(messages)).toEqual([]);
  });
});

describe('isBlank', () => {
  it.each(['', ' ', '\u3000', '\u180E', '\u00AD', '\u001C', '\u{E0020}', '\uFE0F', '\u3164'])(
    'is true of %j',
    (text) => {
      expect(isBlank(text)).toBe(true);
    },
  );

  it.each(['.', '\u0301', '🎉', ' a ', '\u2800', '\uFFFD', '\uE000'])('is false of %j', (text) => {
    expect(isBlank(text)).toBe(false);
  });
});
