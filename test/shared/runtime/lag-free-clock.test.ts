import { once } from 'node:events';
import { describe, expect, it, vi } from 'vitest';
import { LagFreeClock } from '../../../shared/runtime/lag-free-clock.js';
import { patience } from '../../support/patience.js';

/** Keeps the event loop from turning. */
function block(ms: number): void {
  for (const until = performance.now() + ms; performance.now() < until; );
}

describe('LagFreeClock', () => {
  it('goes on with the time', async () => {
    const clock = new LagFreeClock();
    const startedAt = performance.now();
    await vi.waitFor(() => expect(clock.now()).toBeGreaterThan(500), patience);
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(500);
    clock.close();
  });

  it('leaves out the time in which the process could read nothing', async () => {
    const clock = new LagFreeClock();
    block(2000);
    expect(clock.now()).toBeLessThanOrEqual(250);
    await once(AbortSignal.timeout(1), 'abort');
    expect(clock.now()).toBeLessThan(1000);
    clock.close();
  });
});
