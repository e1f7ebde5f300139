import { z } from 'zod';
import type { ProviderId } from '../../shared/contracts/contract.js';
import type { PoolJobPage, PoolJobState } from '../../shared/contracts/fleet-contract.js';
import { Failure } from '../../shared/failures.js';
import type { QueueStore } from '../../shared/queue/queue-store.js';
import { storeTimeoutMs, withTimeout } from '../../shared/runtime/retry.js';
import { defaultLimit, type PageQuery, pageLimit } from '../http/query.js';

/** The queues whose jobs operators list. */
export interface PoolQueues {
  queueOf(provider: ProviderId): ReturnType<QueueStore['createQueue']>;
  readTimes: QueueStore['readTimes'];
}

/** Query of `GET /admin/pools/{provider}/jobs`. */
export interface JobQuery extends PageQuery {
  /** Only jobs in this state, `active` unless it is given. */
  state?: PoolJobState;
  /** Where to continue: `next` of the previous page. */
  offset?: string;
}

/** BullMQ's lists of each state. Between priorities the stores differ in their order. */
const listsOf = {
  active: ['active'],
  waiting: ['prioritized', 'waiting'],
  delayed: ['delayed'],
  failed: ['failed'],
  completed: ['completed'],
} as const satisfies Record<PoolJobState, readonly string[]>;
const states = Object.keys(listsOf) as PoolJobState[];

export const jobQuery = z
  .object({
    state: z.enum(states),
    limit: pageLimit,
    offset: z.string().regex(/^[1-9]\d{0,3}$/, { error: 'must be the value "next" of a page' }),
  })
  .partial();

/** The ids of all pages up to the one asked for are read, because a state can have two lists. */
const maxListed = 10_000;

/** Lists the jobs of a provider in one state, the newest first. Throws `queue_unavailable`. */
export async function listJobs(
  { queueOf, readTimes }: PoolQueues,
  provider: ProviderId,
  { state = 'active', limit = defaultLimit, offset = '0' }: JobQuery,
): Promise<PoolJobPage> {
  const end = Math.min(Number(offset) + limit, maxListed);
  const read = async () => {
    const queue = queueOf(provider);
    const ids = await queue.getRanges([...listsOf[state]], 0, end);
    const jobs = await readTimes(queue, ids.slice(Number(offset), end));
    const data = jobs.map(({ id, attempts, addedAt, startedAt, endedAt }) => ({
      id,
      state,
      attempts,
      addedAt: timeOf(addedAt),
      startedAt: startedAt === null ? null : timeOf(startedAt),
      endedAt: endedAt === null ? null : timeOf(endedAt),
    }));
    return { data, next: ids.length > end && end < maxListed ? String(end) : null };
  };
  return withTimeout(storeTimeoutMs, read()).catch((cause) => {
    throw new Failure('queue_unavailable', { cause });
  });
}

const timeOf = (ms: number): string => new Date(ms).toISOString();
