import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { LagFreeClock } from '../../../shared/runtime/lag-free-clock.js';

let timeMs: number;
beforeEach(() => {
  timeMs = 1000;
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** Time goes on, and with it the timers of an event loop that turns. */
function pass(ms: number): void {
  timeMs += ms;
  vi.advanceTimersByTime(ms);
}

describe('a clock without lag', () => {
  it('in a process that is not late -> goes on with the time', () => {
    const clock = new LagFreeClock(() => timeMs);
    for (let n = 0; n < 10; n += 1) pass(100);
    timeMs += 70;
    expect(clock.now()).toBe(1070);
    clock.close();
  });

  it('in a process that could read nothing for long -> leaves out that time', () => {
    const clock = new LagFreeClock(() => timeMs);
    timeMs += 20_000;
    expect(clock.now()).toBe(250);
    vi.advanceTimersByTime(100);
    pass(100);
    expect(clock.now()).toBe(350);
    clock.close();
  });
});
