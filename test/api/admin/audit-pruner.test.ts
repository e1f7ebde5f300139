import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { startAuditPruner } from '../../../api/admin/audit-pruner.js';
import { Failure } from '../../../shared/failures.js';
import { createRecordingLog } from '../../support/recording-log.js';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it('the audit -> is pruned at the start and every hour until the end, whether or not the database is there', async () => {
  const run = vi.fn().mockRejectedValue(new Failure('database_unavailable'));
  const { log } = createRecordingLog();
  const pruner = startAuditPruner({ database: { run } as never, auditDays: 400, log });
  await vi.advanceTimersByTimeAsync(7_200_000);
  pruner.stop();
  await vi.advanceTimersByTimeAsync(7_200_000);
  expect(run).toHaveBeenCalledTimes(3);
});
