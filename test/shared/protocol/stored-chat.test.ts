import { describe, expect, it } from 'vitest';
import type { Outcome } from '../../../shared/protocol/outcome.js';
import {
  chatKey,
  decodeKeptChat,
  decodeKeptOutcome,
  encodeKeptChat,
  encodeKeptOutcome,
  type KeptChat,
  outcomeKey,
  pointerKey,
} from '../../../shared/protocol/stored-chat.js';

const chat: KeptChat = {
  v: 1,
  id: 'id',
  owner: 'ann',
  provider: 'bedrock',
  model: 'm',
  requestHash: 'abc',
  createdAt: 1,
  deadline: 2,
  keptUntil: 3,
};
const outcome: Outcome = { kind: 'ok', text: ' \u0000\uD800🎉"\\', model: 'm', queueMs: 1, providerMs: 2 };

describe('pointerKey', () => {
  it('is the same for the same owner and key, tells neither, and joins no two', () => {
    expect(pointerKey('ann', 'canary')).toBe(pointerKey('ann', 'canary'));
    expect(pointerKey('ann', 'canary')).toMatch(/^key\.[0-9a-f]{64}$/);
    const others = [pointerKey('ann', 'b'), pointerKey('an', 'nb'), pointerKey('', 'annb'), chatKey('b')];
    expect(new Set([...others, outcomeKey('b')]).size).toBe(5);
  });
});

describe('decodeKeptChat', () => {
  it('reads what was written, with a model and without', () => {
    const { model: _, ...plain } = chat;
    expect(decodeKeptChat(encodeKeptChat(chat))).toEqual(chat);
    expect(decodeKeptChat(encodeKeptChat(plain))).toEqual(plain);
  });

  it.each([
    ['no JSON', 'canary'],
    ['another version', JSON.stringify({ ...chat, v: 2 })],
    ['no owner', JSON.stringify({ ...chat, owner: undefined })],
  ])('refuses %s', (_, text) => {
    expect(() => decodeKeptChat(text)).toThrow(/^(?!.*canary)/s);
  });
});

describe('decodeKeptOutcome', () => {
  it('reads what was written, every character of it', () => {
    expect(decodeKeptOutcome(encodeKeptOutcome(outcome, 5))).toEqual({ v: 1, at: 5, outcome });
  });

  it.each([
    ['no JSON', 'canary'],
    ['another version', JSON.stringify({ v: 2, at: 1, outcome: JSON.stringify(outcome) })],
    ['an outcome that is none', JSON.stringify({ v: 1, at: 1, outcome: '{"kind":"canary"}' })],
  ])('refuses %s', (_, text) => {
    expect(() => decodeKeptOutcome(text)).toThrow(/^(?!.*canary)/s);
  });
});
