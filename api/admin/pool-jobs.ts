import { z } from 'zod';
import type { ProviderId } from '../../shared/contracts/contract.js';
import type { PoolJobPage, PoolJobState } from '../../shared/contracts/fleet-contract.js';
import { Failure } from '../../shared/failures.js';
import { decodeOrigin } from '../../shared/protocol/entries.js';
import type { JobTimes, QueueStore } from '../../shared/queue/queue-store.js';
import { storeTimeoutMs, withTimeout } from '../../shared/runtime/retry.js';
import { defaultLimit, type PageQuery, pageLimit } from '../http/query.js';

/** The queues whose jobs operators list. */
export interface PoolQueues {
  queueOf(provider: ProviderId): ReturnType<QueueStore['createQueue']>;
  store: Pick<QueueStore, 'readTimes' | 'nextIds'>;
}

/** Query of `GET /admin/pools/{provider}/jobs`. */
export interface JobQuery extends PageQuery {
  /** Only jobs in this state, `active` unless it is given. */
  state?: PoolJobState;
  /** Where to continue: `next` of the previous page. */
  offset?: string;
}

const states = ['active', 'waiting', 'delayed', 'failed', 'completed'] as const satisfies PoolJobState[];

export const jobQuery = z
  .object({
    state: z.enum(states),
    limit: pageLimit,
    offset: z.string().regex(/^[1-9]\d{0,3}$/, { error: 'must be the value "next" of a page' }),
  })
  .partial();

/** The ids of all pages up to the one asked for are read. */
const maxListed = 10_000;

/**
 * Lists the jobs of a provider in one state: the waiting ones in the order in which they will run, others the newest
 * first. Throws `queue_unavailable`.
 */
export async function listJobs(
  { queueOf, store }: PoolQueues,
  provider: ProviderId,
  { state = 'active', limit = defaultLimit, offset = '0' }: JobQuery,
): Promise<PoolJobPage> {
  const start = Number(offset);
  const end = Math.min(start + limit, maxListed);
  const read = async () => {
    const queue = queueOf(provider);
    const ids =
      state === 'waiting' ? await store.nextIds(queue, end + 1) : await queue.getRanges([state], 0, end);
    const jobs = await store.readTimes(queue, ids.slice(start, end));
    const data = jobs.map((job) => ({
      state,
      place: state === 'waiting' ? ids.indexOf(job.id, start) + 1 : null,
      ...describeJob(job),
    }));
    return { data, next: ids.length > end && end < maxListed ? String(end) : null };
  };
  return withTimeout(storeTimeoutMs, read()).catch((cause) => {
    throw new Failure('queue_unavailable', { cause });
  });
}

function describeJob({ id, name, attempts, addedAt, startedAt, endedAt }: JobTimes) {
  const origin = decodeOrigin(name);
  return {
    id,
    attempts,
    addedAt: new Date(addedAt).toISOString(),
    startedAt: timeOf(startedAt),
    endedAt: timeOf(endedAt),
    user: origin?.name ?? origin?.user ?? null,
    model: origin?.model ?? null,
    api: origin?.api ?? null,
    deadline: timeOf(origin?.deadline),
  };
}

const timeOf = (ms: number | null = null): string | null => (ms === null ? null : new Date(ms).toISOString());
