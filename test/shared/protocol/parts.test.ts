import { describe, expect, it } from 'vitest';
import type { Turn } from '../../../shared/conversation.js';
import { versionOf } from '../../../shared/protocol/chat-content.js';
import {
  decodeOutcome,
  encodeOutcome,
  type Outcome,
  outcomeVersion,
} from '../../../shared/protocol/outcome.js';
import { type Mark, piecesOf, textOfTape } from '../../../shared/protocol/parts.js';
import { partsVersion, reasoningVersion, writtenVersion } from '../../../shared/protocol/version.js';
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

describe('what crosses is written in the version that it needs', () => {
  const assistant = (part: { model?: string }): Turn => ({
    role: 'assistant',
    content: [{ type: 'opaque', provider: 'anthropic', data: '{}', ...part }],
  });
  const outcome = (...marks: Mark[]): Outcome => {
    const times = { queueMs: 0, providerMs: 0 };
    return { kind: 'ok', text: '{}{}', model: 'm', ...(marks.length > 0 && { marks }), ...times };
  };
  const call: Mark = { kind: 'call', at: 0, id: 'c', name: 'f' };

  it.each([
    ['texts', [{ role: 'user', content: 'a' }], writtenVersion],
    ['opaque data without its model', [assistant({})], partsVersion],
    ['opaque data of a model', [assistant({}), assistant({ model: 'm' })], reasoningVersion],
  ] as const)('given a job with %s', (_, turns, expected) =>
    expect(versionOf({ turns: [...turns] })).toBe(expected),
  );

  it.each([
    ['text', outcome(), writtenVersion],
    ['a call', outcome(call), partsVersion],
    ['a call with a signature', outcome({ ...call, signature: 's' }), partsVersion],
    ['a call with other fields', outcome({ ...call, extra: '{}' }), reasoningVersion],
    ['thinking', outcome({ kind: 'thinking', at: 0 }), reasoningVersion],
    ['opaque data', outcome({ ...opaque, at: 0, length: 2 }), reasoningVersion],
  ])('given an outcome with %s', (_, given, expected) => {
    expect(outcomeVersion(given)).toBe(expected);
    expect(decodeOutcome(encodeOutcome(given))).toEqual(given);
  });
});
