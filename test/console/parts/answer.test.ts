import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { poll } from '../../../console/parts/answer.ts';

describe('poll', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('reads at once, then after a pause behind each end, until the read says that it is enough', async () => {
    const ends: PromiseWithResolvers<boolean>[] = [];
    poll(1000, () => {
      ends.push(Promise.withResolvers());
      return ends.at(-1)?.promise ?? Promise.resolve(true);
    });
    await vi.advanceTimersByTimeAsync(5000);
    expect(ends).toHaveLength(1);
    ends[0]?.resolve(false);
    await vi.advanceTimersByTimeAsync(999);
    expect(ends).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(ends).toHaveLength(2);
    ends[1]?.resolve(true);
    await vi.advanceTimersByTimeAsync(5000);
    expect(ends).toHaveLength(2);
  });

  it('ends when it is stopped, in a pause and in a read, whose signal aborts', async () => {
    const signals: AbortSignal[] = [];
    const read = (pauses: boolean) => async (signal: AbortSignal) => {
      signals.push(signal);
      if (!pauses) await new Promise((resolve) => signal.addEventListener('abort', resolve));
      return false;
    };
    const stops = [poll(1000, read(true)), poll(1000, read(false))];
    await vi.advanceTimersByTimeAsync(500);
    for (const stop of stops) stop();
    await vi.advanceTimersByTimeAsync(5000);
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
  });
});
