import { expect, it, vi } from 'vitest';
import { singleFlight } from '../../../shared/runtime/retry.js';

it('all who ask during a run -> share it; those who ask soon after wait, and share the next', async () => {
  const waits: number[] = [];
  const work = vi.fn(async () => 'done');
  const delay = async (ms: number) => void waits.push(ms);
  const ask = singleFlight(work, { apartMs: 3_600_000, delay });
  expect(await Promise.all([ask(), ask(), ask()])).toEqual(['done', 'done', 'done']);
  expect([work.mock.calls.length, waits]).toEqual([1, []]);
  await Promise.all([ask(), ask()]);
  expect(work).toHaveBeenCalledTimes(2);
  // For the rest of the hour, once for both.
  expect(waits).toEqual([expect.any(Number)]);
});

it('a run that fails -> all who share it fail, and the next one is tried', async () => {
  const work = vi.fn().mockRejectedValueOnce(new Error('down')).mockResolvedValue('done');
  const ask = singleFlight(work, { apartMs: 0 });
  const both = await Promise.allSettled([ask(), ask()]);
  expect(both.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(await ask()).toBe('done');
});
