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

describe('decodeStoredChat', () => {
  it('reads what was written, with a model and without', () => {
    const { model: _, ...plain } = chat;
    expect(decodeStoredChat(encodeStoredChat(chat))).toEqual(chat);
    expect(decodeStoredChat(encodeStoredChat(plain))).toEqual(plain);
  });

  it.each([
    ['no JSON', 'canary'],
    ['another version', JSON.stringify({ ...chat, v: 2 })],
    ['no owner', JSON.stringify({ ...chat, owner: undefined })],
  ])('refuses %s', (_, text) => {
    expect(() => decodeStoredChat(text)).toThrow(/^(?!.*canary)/s);
  });
});

describe('decodeStoredResult', () => {
  it('reads what was written, every character of it', () => {
    expect(decodeStoredResult(encodeStoredResult(outcome, 5))).toEqual({ v: 1, at: 5, outcome });
  });

  it.each([
    ['no JSON', 'canary'],
    ['another version', JSON.stringify({ v: 2, at: 1, outcome: JSON.stringify(outcome) })],
    ['an outcome that is none', JSON.stringify({ v: 1, at: 1, outcome: '{"kind":"canary"}' })],
  ])('refuses %s', (_, text) => {
    expect(() => decodeStoredResult(text)).toThrow(/^(?!.*canary)/s);
  });
});
