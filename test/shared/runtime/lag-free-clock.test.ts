import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { LagFreeClock } from '../../../shared/runtime/lag-free-clock.js';

describe('LagFreeClock', () => {
  function open() {
    vi.useFakeTimers();
    const clock = new LagFreeClock();
    onTestFinished(() => {
      clock.close();
      vi.useRealTimers();
    });
    return clock;
  }

  it('a process that is on time -> goes on with the time', () => {
    const clock = open();
    for (const passedMs of [50, 550, 10_000]) {
      vi.advanceTimersByTime(passedMs - clock.now());
      expect(clock.now()).toBe(passedMs);
    }
  });

  it('a process that could read nothing for a while -> leaves out all but a quarter of a second', () => {
    const clock = open();
    const clockAt = vi.spyOn(performance, 'now');
    const startedAt = performance.now();
    clockAt.mockReturnValue(startedAt + 2000);
    expect(clock.now()).toBe(250);
    // The first timer after it fires.
    vi.advanceTimersByTime(100);
    clockAt.mockReturnValue(startedAt + 2050);
    expect(clock.now()).toBe(300);
    clockAt.mockRestore();
  });
});
