import { describe, expect, it } from 'vitest';
import { type Mark, piecesOf, textOfTape } from '../../../shared/protocol/parts.js';
import { callsOf } from '../../support/replies.js';

const source = { provider: 'anthropic', model: 'm' } as const;
const opaque = { kind: 'opaque', ...source, role: 'block' } as const;

describe('piecesOf', () => {
  it('a tape that ends early -> thinking, opaque data, texts and calls in order, each as far as it is there', () => {
    const marks: Mark[] = [
      { kind: 'thinking', at: 0 },
      { ...opaque, at: 3, length: 7 },
      { kind: 'text', at: 10 },
      { kind: 'text', at: 12 },
      { kind: 'call', at: 14, id: 'c', name: 'f', extra: '{"caller":1}' },
    ];
    const text = 'hmm{"a":1}onto{"x":2}';
    expect(piecesOf({ text, marks })).toEqual([
      { kind: 'thinking', text: 'hmm' },
      { ...opaque, data: '{"a":1}' },
      { kind: 'text', text: 'on' },
      { kind: 'text', text: 'to' },
      { kind: 'call', at: 14, id: 'c', name: 'f', extra: '{"caller":1}', arguments: '{"x":2}' },
    ]);
    expect(textOfTape({ text, marks })).toBe('onto');
    expect(callsOf({ text, marks })).toHaveLength(1);
    expect(piecesOf({ text: 'hmm{"a"', marks: marks.slice(0, 2) }).at(-1)).toEqual({
      ...opaque,
      data: '{"a"',
    });
  });
});
