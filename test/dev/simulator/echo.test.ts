import { describe, expect, it } from 'vitest';
import { echo, splitText } from '../../../dev/simulator/echo.js';
import type { Turn } from '../../../shared/conversation.js';

const turn = (role: Turn['role'], content: string): Turn => ({ role, content });

describe('an echo', () => {
  it('of long turns -> shortens each, and the last user turn less', () => {
    const turns = [
      turn('user', 'a'.repeat(600)),
      turn('assistant', 'b'.repeat(600)),
      turn('user', 'c'.repeat(600)),
    ];
    expect(echo('bedrock', turns)).toBe(
      `Simulated bedrock reply (no model was called). I read 3 turns, 1800 characters: [user] ${'a'.repeat(80)}… | [assistant] ${'b'.repeat(80)}… | [user] ${'c'.repeat(500)}…`,
    );
  });

  it('of a very long conversation -> shows its newest turns', () => {
    const turns = Array.from({ length: 1000 }, (_, index) => turn('user', `<${index}>`));
    const text = echo('openai', turns);
    expect(text).toContain('I read 1000 turns');
    expect(text).toContain('(800 earlier) | [user] <800> | ');
    expect(text.endsWith('[user] <999>')).toBe(true);
  });
});

it.each(['', 'a', '👋', 'abc', 'x👋'.repeat(7), '👋'.repeat(5000)])(
  'the pieces of the text %# -> are whole and not empty',
  (text) => {
    const pieces = splitText(text);
    expect(pieces.join('')).toBe(text);
    expect(pieces.every((piece) => piece.length > 0 && piece.isWellFormed())).toBe(true);
  },
);
