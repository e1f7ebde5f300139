import { describe, expect, it } from 'vitest';
import { describeTimes, phasesOf } from '../../../console/requests/timeline.tsx';

const times = { queuedMs: 2, startedMs: 300, firstTokenMs: 900, endedMs: 3100 };

describe('phasesOf', () => {
  it('is as long as the chat took, in its order', () => {
    expect(phasesOf(times)).toEqual([
      { name: 'received', ms: 2 },
      { name: 'queued', ms: 298 },
      { name: 'started', ms: 600 },
      { name: 'writing', ms: 2200 },
    ]);
  });

  it('has what is known: nothing of a refused one, no first token without a stream', () => {
    expect(phasesOf({ endedMs: 5 })).toEqual([{ name: 'received', ms: 5 }]);
    expect(phasesOf({ queuedMs: 1, startedMs: 4, endedMs: 9 }).map(({ ms }) => ms)).toEqual([1, 3, 5]);
  });
});

describe('describeTimes', () => {
  it('says the same as text', () => {
    expect(describeTimes(times)).toBe('queued 2 ms, started 300 ms, first token 900 ms, ended 3.1 s');
    expect(describeTimes({ endedMs: 5 })).toBe('ended 5 ms');
  });
});
