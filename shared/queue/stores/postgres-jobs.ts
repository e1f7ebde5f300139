import type { Queue } from 'bullmq';
import type pg from 'pg';
import { Semaphore } from '../../runtime/semaphore.js';
import type { JobTimes, LostRuns, OldestJobs, StoredJob, UnfinishedState } from '../queue-store.js';

interface Row {
  id: string;
  state: string;
  attempts_started: number;
  is_locked: boolean | null;
  finished_at_ms: string | null;
  return_value: unknown;
}

/** `schema` is BullMQ's. */
interface AskedQueue {
  readonly schema: string;
  readonly queue: Queue;
}

interface Asked extends AskedQueue {
  readonly jobIds: readonly string[];
}

const now = `extract(epoch from clock_timestamp()) * 1000`;

/** Implements `QueueStore.readJobs`. */
export async function readJobs(pool: pg.Pool, { schema, queue, jobIds }: Asked): Promise<StoredJob[]> {
  if (jobIds.length === 0) return [];
  const text = `select id, state, attempts_started, finished_at_ms, return_value,
    locked_until_ms > ${now} as is_locked
    from ${schema}.job where queue = $1 and id = any($2)`;
  const { rows } = await pool.query<Row>(text, [queue.name, jobIds]);
  const byId = new Map(rows.map((row) => [row.id, row]));
  return jobIds.map((id) => toStoredJob(byId.get(id)));
}

/** Implements `QueueStore.readTimes`. */
export async function readTimes(pool: pg.Pool, { schema, queue, jobIds }: Asked): Promise<JobTimes[]> {
  // pg gives a bigint as a text.
  const text = `select id, name, added_at_ms::float8 as "addedAt", processed_at_ms::float8 as "startedAt",
    finished_at_ms::float8 as "endedAt", attempts_started as attempts
    from ${schema}.job where queue = $1 and id = any($2) order by array_position($2, id)`;
  return (await pool.query<JobTimes>(text, [queue.name, jobIds])).rows;
}

const lostColumns = `id, name, added_at_ms::float8 as "addedAt",
  stalled_count + (state = 'active' and coalesce(locked_until_ms, 0) <= ${now})::int as lost`;

/** Implements `QueueStore.lostRuns`. */
export async function lostRuns(pool: pg.Pool, { schema, queue, jobIds }: Asked): Promise<LostRuns[]> {
  const text = `select ${lostColumns}
    from ${schema}.job where queue = $1 and id = any($2) order by array_position($2, id)`;
  return (await pool.query<LostRuns>(text, [queue.name, jobIds])).rows;
}

/** The conditions of BullMQ's function `clean`. */
const conditions = {
  wait: `state = 'waiting' and priority = 0`,
  prioritized: `state = 'waiting' and priority > 0`,
  delayed: `state = 'delayed'`,
  active: `state = 'active'`,
} as const satisfies Record<UnfinishedState, string>;

/** Implements `QueueStore.lostRunsOfOldest`. */
export async function lostRunsOfOldest(
  pool: pg.Pool,
  { schema, queue, state, addedBefore, limit }: AskedQueue & OldestJobs,
): Promise<LostRuns[]> {
  const text = `select ${lostColumns}
    from ${schema}.job where queue = $1 and ${conditions[state]} and added_at_ms <= $2 order by seq limit $3`;
  const { rows } = await pool.query<LostRuns>(text, [queue.name, addedBefore, limit]);
  return rows.filter(({ lost }) => lost > 0);
}

/** Implements `QueueStore.nextIds`. BullMQ's `getRanges` gives the last of those without a priority. */
export async function nextIds(
  pool: pg.Pool,
  { schema, queue, limit }: AskedQueue & { readonly limit: number },
): Promise<string[]> {
  const text = `select id from ${schema}.job where queue = $1 and state = 'waiting' order by priority, seq limit $2`;
  const { rows } = await pool.query<{ id: string }>(text, [queue.name, limit]);
  return rows.map(({ id }) => id);
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
