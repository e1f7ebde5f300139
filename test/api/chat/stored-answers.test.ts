import { describe, expect, it, vi } from 'vitest';
import { LiveChats } from '../../../api/chat/live-chats.js';
import { StoredAnswers } from '../../../api/chat/stored-answers.js';
import { answerSizes } from '../../../api/chat/stored-chats.js';
import type { Attempt } from '../../../shared/protocol/attempts.js';
import type { Outcome } from '../../../shared/protocol/outcome.js';
import { encodeStoredResult } from '../../../shared/protocol/stored-chat.js';
import { attach, leave } from '../../support/attached.js';

const retryAfter = expect.objectContaining({ retryAfterMs: expect.any(Number) });
const limited = expect.objectContaining({ code: 'rate_limited', status: 429, facts: retryAfter });
const megabyte = 1_048_576;
const hourMs = 3_600_000;

function startAnswers() {
  let now = 1_000_000;
  const answers = new StoredAnswers(() => now);
  return {
    answers,
    pass: (ms: number) => {
      now += ms;
    },
    reserve: (user: string, megabytes: number, forMs = hourMs) =>
      answers.reserve({ user, bytes: megabytes * megabyte, keptUntil: now + forMs }),
  };
}

describe('StoredAnswers', () => {
  it('have 64 MiB for each user', () => {
    const { reserve } = startAnswers();
    reserve('one', 60);
    expect(() => reserve('one', 5)).toThrow(limited);
    reserve('one', 4);
    reserve('another', 64);
  });

  it('have 512 MiB in all', () => {
    const { reserve } = startAnswers();
    for (let n = 0; n < 8; n += 1) reserve(`user ${n}`, 64);
    expect(() => reserve('another', 0)).toThrow(limited);
  });

  it('take up their room until their records end, and no longer', () => {
    const { reserve, pass } = startAnswers();
    reserve('one', 40);
    reserve('one', 24, 2 * hourMs);
    pass(hourMs - 1);
    expect(() => reserve('one', 1)).toThrow(limited);
    pass(10_000);
    reserve('one', 40, 2 * hourMs);
    pass(hourMs);
    reserve('one', 24);
    expect(() => reserve('one', 1)).toThrow(limited);
  });

  it('give room back at once for a chat that is not stored after all', () => {
    const { reserve } = startAnswers();
    reserve('one', 64).release();
    reserve('one', 64);
  });

  it('keep room for the answer alone once the chat has ended, and none of it after the record', () => {
    const { reserve, pass } = startAnswers();
    const early = reserve('one', 64);
    expect(() => reserve('one', 1)).toThrow(limited);
    early.resize(megabyte);
    const late = reserve('one', 63, 2 * hourMs);
    pass(hourMs + 10_000);
    reserve('one', 1, 2 * hourMs);
    early.resize(0);
    expect(() => reserve('one', 1)).toThrow(limited);
    late.resize(0);
    reserve('one', 62);
  });

  it('count an answer that is longer than what was reserved for it', () => {
    const { reserve } = startAnswers();
    reserve('one', 1).resize(63 * megabyte);
    expect(() => reserve('one', 2)).toThrow(limited);
    reserve('one', 1);
  });

  it('count the records of a chat beside its answer, from its beginning to their end', () => {
    const { answers } = startAnswers();
    const asked = { user: 'one', bytes: 32 * megabyte, besideBytes: 32 * megabyte, keptUntil: hourMs };
    const first = answers.reserve({ ...asked, keptUntil: 2_000_000 });
    expect(() => answers.reserve({ ...asked, bytes: 0, besideBytes: 1 })).toThrow(limited);
    first.resize(megabyte);
    expect(() => answers.reserve({ ...asked, bytes: 32 * megabyte, besideBytes: 0 })).toThrow(limited);
    answers.reserve({ ...asked, bytes: 30 * megabyte, besideBytes: megabyte });
  });

  it('count a kilobyte for each record, however short its answer', () => {
    const { reserve } = startAnswers();
    for (let n = 0; n < 65_536; n += 1) reserve('one', 0.0005).resize(0);
    expect(() => reserve('one', 0)).toThrow(limited);
  });
});

describe('answerSizes', () => {
  const times = { queueMs: 300, providerMs: 2000 };

  const ok = { kind: 'ok', text: '', model: 'm', ...times } as const;
  const long = 'x'.repeat(1000);
  it.each<[string, Outcome]>([
    ['a text', { ...ok, text: 'Grüße' }],
    ['a text of quotes', { ...ok, text: '"'.repeat(1000) }],
    ['a text that was cut', { ...ok, kind: 'truncated', text: 'Grü' }],
    ['marks', { ...ok, marks: [{ kind: 'call', at: 0, id: long, name: long }] }],
    ["a model's name", { ...ok, model: long }],
    ['attempts', { ...ok, attempts: Array(5).fill({ provider: 'openai', model: long, code: 'ok' }) }],
    ['a failure', { kind: 'failed', code: 'internal', retryable: true, ...times }],
    ['a cancelled chat', { kind: 'cancelled', ...times }],
  ])('keep room for what is written of %s alone, once it is known', (_, outcome) => {
    const { chats, chat, resize } = follow();
    const request = attach(chats, 'one', { chat });
    chats.leave(request, 'timeout', { goesOn: true });
    expect(resize).not.toHaveBeenCalled();
    chats.onOutcome('one', outcome);
    const written = Buffer.byteLength(encodeStoredResult(outcome, Date.now()));
    expect(resize).toHaveBeenCalledExactlyOnceWith(written);
  });

  it('keep room for the attempts that the record of a chat has got in the meantime', () => {
    const { chats, chat, resize } = follow();
    attach(chats, 'one', { chat });
    const earlier: Attempt['earlier'] = [{ provider: 'openai', model: long, code: 'internal' }];
    chats.onMoved('one', { provider: 'bedrock', attempt: 2, earlier });
    chats.onOutcome('one', { kind: 'cancelled', ...times });
    expect(resize.mock.lastCall?.[0]).toBeGreaterThan(1000);
  });

  it('keep the room of a chat whose end is unknown, and need none', () => {
    const { chats, chat, resize } = follow();
    leave(chats, attach(chats, 'one', { chat }));
    expect(resize).not.toHaveBeenCalled();
    attach(chats, 'another');
    chats.onOutcome('another', { kind: 'cancelled', ...times });
  });

  function follow() {
    const chats = new LiveChats();
    chats.listen(answerSizes);
    const resize = vi.fn();
    const chat = { expiresAt: Date.now() + hourMs, answer: { resize, release: () => {} } };
    return { chats, chat, resize };
  }
});
