import type { Queue } from 'bullmq';
import type pg from 'pg';
import type { StoredJob } from '../queue-store.js';

interface Row {
  id: string;
  state: string;
  attempts_started: number;
  finished_at_ms: string | null;
  return_value: unknown;
}

/** As `QueueStore.readJobs`; `schema` is BullMQ's. */
export async function readJobs(
  pool: pg.Pool,
  { schema, queue, jobIds }: { schema: string; queue: Queue; jobIds: readonly string[] },
): Promise<StoredJob[]> {
  if (jobIds.length === 0) return [];
  const text = `select id, state, attempts_started, finished_at_ms, return_value from ${schema}.job where queue = $1 and id = any($2)`;
  const { rows } = await pool.query<Row>(text, [queue.name, jobIds]);
  const byId = new Map(rows.map((row) => [row.id, row]));
  return jobIds.map((id) => toStoredJob(byId.get(id)));
}

function toStoredJob(row: Row | undefined): StoredJob {
  if (row === undefined) return { state: 'unknown' };
  switch (row.state) {
    case 'active':
      return { state: 'running' };
    case 'failed':
      return { state: 'failed', finishedOn: Number(row.finished_at_ms) };
    case 'completed':
      return { state: 'completed', finishedOn: Number(row.finished_at_ms), returnValue: row.return_value };
    default:
      return { state: 'queued', ...(row.attempts_started > 0 && { wasTaken: true }) };
  }
}
