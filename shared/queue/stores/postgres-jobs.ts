import type { Queue } from 'bullmq';
import type pg from 'pg';
import { Semaphore } from '../../runtime/semaphore.js';
import type { JobTimes, StoredJob } from '../queue-store.js';

interface Row {
  id: string;
  state: string;
  attempts_started: number;
  is_locked: boolean | null;
  finished_at_ms: string | null;
  return_value: unknown;
}

/** Jobs of a queue; `schema` is BullMQ's. */
interface Asked {
  readonly schema: string;
  readonly queue: Queue;
  readonly jobIds: readonly string[];
}

/** Implements `QueueStore.readJobs`. */
export async function readJobs(pool: pg.Pool, { schema, queue, jobIds }: Asked): Promise<StoredJob[]> {
  if (jobIds.length === 0) return [];
  const text = `select id, state, attempts_started, finished_at_ms, return_value,
    locked_until_ms > extract(epoch from clock_timestamp()) * 1000 as is_locked
    from ${schema}.job where queue = $1 and id = any($2)`;
  const { rows } = await pool.query<Row>(text, [queue.name, jobIds]);
  const byId = new Map(rows.map((row) => [row.id, row]));
  return jobIds.map((id) => toStoredJob(byId.get(id)));
}

/** Implements `QueueStore.readTimes`. */
export async function readTimes(pool: pg.Pool, { schema, queue, jobIds }: Asked): Promise<JobTimes[]> {
  // pg gives a bigint as a text.
  const text = `select id, added_at_ms::float8 as "addedAt", processed_at_ms::float8 as "startedAt",
    finished_at_ms::float8 as "endedAt", attempts_started as attempts
    from ${schema}.job where queue = $1 and id = any($2) order by array_position($2, id)`;
  return (await pool.query<JobTimes>(text, [queue.name, jobIds])).rows;
}

function toStoredJob(row: Row | undefined): StoredJob {
  if (row === undefined) return { state: 'unknown' };
  switch (row.state) {
    case 'failed':
      return { state: 'failed', finishedOn: Number(row.finished_at_ms) };
    case 'completed':
      return { state: 'completed', finishedOn: Number(row.finished_at_ms), returnValue: row.return_value };
    default:
      // In both stores a job runs while a worker holds its lock.
      if (row.is_locked) return { state: 'running' };
      return { state: 'queued', ...(row.attempts_started > 0 && { wasTaken: true }) };
  }
}

/**
 * Bounds the queries under way to the connections of a pool. A query waits for as long as others are answered. When no
 * answer has come for `silentMs` milliseconds, the waiting queries fail without having been sent.
 */
export class QueryQueue {
  readonly #connections: Semaphore;
  readonly #silentMs: number;
  #answeredAt = 0;

  constructor({ concurrency, silentMs }: { concurrency: number; silentMs: number }) {
    this.#connections = new Semaphore(concurrency);
    this.#silentMs = silentMs;
  }

  run<T>(query: () => Promise<T>): Promise<T> {
    const send = async () => {
      const answer = await query();
      this.#answeredAt = performance.now();
      return answer;
    };
    return this.#connections.run(send, {
      waitMs: this.#silentMs,
      extendMs: () => this.#answeredAt + this.#silentMs - performance.now(),
      timeoutError: () => new Error('the store answers nothing'),
    });
  }
}
