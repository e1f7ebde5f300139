import { describe, expect, it } from 'vitest';
import { StoredAnswers } from '../../../api/chat/stored-answers.js';

const retryAfter = expect.objectContaining({ retryAfterMs: expect.any(Number) });
const limited = expect.objectContaining({ code: 'rate_limited', status: 429, facts: retryAfter });
const megabyte = 1_048_576;
const hourMs = 3_600_000;

function startAnswers() {
  let now = 1_000_000;
  const answers = new StoredAnswers(() => now);
  return {
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
    early.shrink(megabyte);
    const late = reserve('one', 63, 2 * hourMs);
    pass(hourMs + 10_000);
    reserve('one', 1, 2 * hourMs);
    early.shrink(0);
    expect(() => reserve('one', 1)).toThrow(limited);
    late.shrink(0);
    reserve('one', 62);
  });

  it('count a kilobyte for each record, however short its answer', () => {
    const { reserve } = startAnswers();
    for (let n = 0; n < 65_536; n += 1) reserve('one', 0.0005).shrink(0);
    expect(() => reserve('one', 0)).toThrow(limited);
  });
});
