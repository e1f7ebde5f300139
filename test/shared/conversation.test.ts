import { describe, expect, it } from 'vitest';
import { isBlank, toTurns } from '../../shared/conversation.js';
import { conversationShapes } from '../support/conversations.js';

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

  it.each(conversationShapes.filter((shape) => !shape.accepted))(
    'leaves nothing of: $name',
    ({ messages }) => {
      expect(toTurns(messages)).toEqual([]);
    },
  );
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
