import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { startRetention } from '../../../api/admin/retention.js';
import { Failure } from '../../../shared/failures.js';
import { createRecordingLog } from '../../support/recording-log.js';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const start = (run: () => Promise<unknown>) => {
  const config = { AUDIT_DAYS: 400, LEDGER_DAYS: 400 };
  return startRetention({ database: { run } as never, config, log: createRecordingLog().log });
};

it('audit and ledger -> are pruned at the start and every hour until the end', async () => {
  const run = vi.fn(async () => []);
  const retention = start(run);
  await vi.advanceTimersByTimeAsync(7_200_000);
  retention.stop();
  await vi.advanceTimersByTimeAsync(7_200_000);
  expect(run).toHaveBeenCalledTimes(6);
});

it('the database is away -> they are tried again in an hour', async () => {
  const run = vi.fn().mockRejectedValue(new Failure('database_unavailable'));
  const retention = start(run);
  await vi.advanceTimersByTimeAsync(3_600_000);
  retention.stop();
  expect(run).toHaveBeenCalledTimes(2);
});
