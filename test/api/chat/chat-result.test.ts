import { describe, expect, it } from 'vitest';
import { statusOf } from '../../../api/chat/chat-result.js';

const deadline = 100_000;

describe('statusOf', () => {
  it.each([
    ['queued', -1, 'queued'],
    ['queued', 0, 'expired'],
    ['unknown', -1, 'queued'],
    ['unknown', 0, 'expired'],
    ['running', -1, 'running'],
    ['running', 9999, 'running'],
    // No worker that is alive takes longer to write down how it ended.
    ['running', 10_000, 'expired'],
  ] as const)('says of a job that is %s, %d ms past the deadline, that it is %s', (state, late, status) => {
    expect(statusOf({ state }, { deadline, now: deadline + late })).toBe(status);
  });
});
