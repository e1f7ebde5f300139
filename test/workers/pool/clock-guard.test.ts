import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { ClockGuard } from '../../../workers/pool/pool-throttle.js';
import { patience } from '../../support/patience.js';
import { createRecordingLog } from '../../support/recording-log.js';

function start() {
  const clock = { aheadMs: 0, agrees: true, changes: [] as boolean[] };
  const guard = new ClockGuard({
    check: () => (clock.agrees ? Promise.resolve() : Promise.reject(new Error('apart'))),
    onChange: () => clock.changes.push(guard.isOff),
    log: createRecordingLog().log,
    now: () => Date.now() + clock.aheadMs,
    ...{ everyMs: 1, checkPauseMs: 5 },
  });
  guard.start();
  onTestFinished(() => guard.stop());
  return { clock, guard };
}

describe('ClockGuard', () => {
  it.each([120_000, -120_000])('a jump by %i ms -> it is off until the store agrees', async (aheadMs) => {
    const { clock, guard } = start();
    Object.assign(clock, { aheadMs, agrees: false });
    await vi.waitFor(() => expect(guard.isOff).toBe(true), patience);
    Object.assign(clock, { aheadMs: 0, agrees: true });
    await vi.waitFor(() => expect(guard.isOff).toBe(false), patience);
    expect(clock.changes).toEqual([true, false]);
  });

  it('a jump to the right time, as after a suspension -> it goes by that time once the store agrees', async () => {
    const { clock } = start();
    clock.aheadMs = 600_000;
    await vi.waitFor(() => expect(clock.changes).toEqual([true, false]), patience);
    clock.aheadMs = 0;
    await vi.waitFor(() => expect(clock.changes.slice(0, 3)).toEqual([true, false, true]), patience);
  });
});
