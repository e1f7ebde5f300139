import { describe, expect, it } from 'vitest';
import type { Outcome } from '../../../shared/protocol/outcome.js';
import {
  chatKey,
  decodeStoredChat,
  decodeStoredResult,
  encodeStoredChat,
  encodeStoredResult,
  idempotencyIndexKey,
  resultKey,
  type StoredChat,
} from '../../../shared/protocol/stored-chat.js';

const chat: StoredChat = {
  v: 1,
  id: 'id',
  owner: 'ann',
  ownerId: 'id of ann',
  provider: 'bedrock',
  model: 'm',
  requestHash: 'abc',
  createdAt: 1,
  deadline: 2,
  keptUntil: 3,
};
const outcome: Outcome = { kind: 'ok', text: ' \u0000\uD800🎉"\\', model: 'm', queueMs: 1, providerMs: 2 };

describe('idempotencyIndexKey', () => {
  it('is the same for the same owner and key, tells neither, and joins no two', () => {
    expect(idempotencyIndexKey('ann', 'canary')).toBe(idempotencyIndexKey('ann', 'canary'));
    expect(idempotencyIndexKey('ann', 'canary')).toMatch(/^key\.[0-9a-f]{64}$/);
    const others = [
      idempotencyIndexKey('ann', 'b'),
      idempotencyIndexKey('an', 'nb'),
      idempotencyIndexKey('', 'annb'),
      chatKey('b'),
    ];
    expect(new Set([...others, resultKey('b')]).size).toBe(5);
  });
});

describe('decodeStoredChat and decodeStoredResult', () => {
  it('read what was written, every character of it, with a model and without', () => {
    const { model: _, ...plain } = chat;
    expect(decodeStoredChat(encodeStoredChat(chat))).toEqual(chat);
    expect(decodeStoredChat(encodeStoredChat(plain))).toEqual(plain);
    expect(decodeStoredResult(encodeStoredResult(outcome, 5))).toEqual({ v: 1, at: 5, outcome });
  });

  it('read what is written of a chat with parts and of a reply with calls', () => {
    const calling: Outcome = { ...outcome, marks: [{ kind: 'call', at: 0, id: 'a', name: 'f' }] };
    const withParts: StoredChat = { ...chat, parts: true };
    expect(decodeStoredChat(encodeStoredChat(withParts))).toEqual(withParts);
    expect(decodeStoredResult(encodeStoredResult(calling, 5))).toEqual({ v: 1, at: 5, outcome: calling });
  });

  it.each([
    [decodeStoredChat, 'canary'],
    [decodeStoredChat, JSON.stringify({ ...chat, v: 5 })],
    [decodeStoredChat, JSON.stringify({ ...chat, owner: undefined })],
    [decodeStoredResult, 'canary'],
    [decodeStoredResult, JSON.stringify({ v: 5, at: 1, outcome: JSON.stringify(outcome) })],
    [decodeStoredResult, JSON.stringify({ v: 1, at: 1, outcome: '{"kind":"canary"}' })],
  ])('refuse what they cannot read, and do not quote it (%o, %s)', (decode, text) => {
    expect(() => decode(text)).toThrow(/^(?!.*canary)/s);
  });
});
