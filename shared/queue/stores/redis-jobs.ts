import type { Queue } from 'bullmq';
import type { Result } from 'ioredis';
import type { JobTimes, LostRuns, OldestJobs, StoredJob, UnfinishedState } from '../queue-store.js';
import type { RedisConnection } from './redis-connection.js';

declare module 'ioredis' {
  interface RedisCommander<Context> {
    /** See `script`. */
    readJobs(queue: string, ...jobIds: string[]): Result<Found[], Context>;
    /** See `lostRunsScript`. */
    lostRuns(queue: string, active: string, ...jobIds: string[]): Result<Lost[], Context>;
  }
}

type Found = 'unknown' | 'queued' | 'taken before' | 'running' | 'unreadable' | EndedJob;
type EndedJob = readonly [finishedOn: string, failed: 0 | 1, returnValue: string | null];
type Lost = readonly [id: string, name: string, lost: number, addedAt: string, startedAt?: string];

/**
 * BullMQ's own `getState` reads the whole lists of waiting and active jobs for each job. A job's hash and lock say as
 * much: it is running while a worker holds its lock. A key that is no hash was not written by BullMQ and does not
 * affect the others. All keys begin with the first one, so they are in one slot of a cluster.
 */
const script = `
  local found = {}
  for n, id in ipairs(ARGV) do
    local key = KEYS[1] .. id
    local job = redis.pcall('HMGET', key, 'timestamp', 'finishedOn', 'failedReason', 'returnvalue', 'ats')
    if job.err then found[n] = 'unreadable'
    elseif job[2] then found[n] = { job[2], job[3] and 1 or 0, job[4] }
    elseif not job[1] then found[n] = 'unknown'
    elseif redis.call('EXISTS', key .. ':lock') == 1 then found[n] = 'running'
    else found[n] = job[5] and 'taken before' or 'queued' end
  end
  return found`;

/**
 * A job that was taken and has no lock is looked for among the active ones, which are read once at most: one that was
 * handed back has no lock either.
 */
const lostRunsScript = `
  local active
  local function isActive(id)
    if not active then
      active = {}
      for _, one in ipairs(redis.call('LRANGE', KEYS[2], 0, -1)) do active[one] = true end
    end
    return active[id]
  end
  local found = {}
  for _, id in ipairs(ARGV) do
    local key = KEYS[1] .. id
    local job = redis.pcall('HMGET', key, 'name', 'timestamp', 'stc', 'processedOn', 'finishedOn')
    if job[2] then
      local mayRun = job[4] and not job[5]
      local isLost = mayRun and redis.call('EXISTS', key .. ':lock') == 0 and isActive(id)
      found[#found + 1] = { id, job[1] or '', tonumber(job[3] or 0) + (isLost and 1 or 0), job[2], job[4] }
    end
  end
  return found`;

/** Defines on the connection the commands that `readJobs` and `lostRuns` need. */
export function defineReadJobs(redis: RedisConnection): void {
  redis.defineCommand('readJobs', { numberOfKeys: 1, lua: script });
  redis.defineCommand('lostRuns', { numberOfKeys: 2, lua: lostRunsScript });
}

/** Implements `QueueStore.readJobs`; the connection must have been prepared by `defineReadJobs`. */
export async function readJobs(
  redis: RedisConnection,
  queue: Queue,
  jobIds: readonly string[],
): Promise<StoredJob[]> {
  if (jobIds.length === 0) return [];
  const found = await redis.readJobs(queue.toKey(''), ...jobIds);
  return found.map(toStoredJob);
}

/** Implements `QueueStore.readTimes`. */
export async function readTimes(
  redis: RedisConnection,
  queue: Queue,
  jobIds: readonly string[],
): Promise<JobTimes[]> {
  const fields = ['name', 'timestamp', 'processedOn', 'finishedOn', 'ats'];
  const read = async (id: string): Promise<JobTimes | undefined> => {
    const [name, ...times] = await redis.hmget(queue.toKey(id), ...fields);
    const [addedAt, startedAt = null, endedAt = null, attempts] = times.map((text) =>
      text ? Number(text) : null,
    );
    if (addedAt) return { id, name: name ?? '', addedAt, startedAt, endedAt, attempts: attempts ?? 0 };
    return undefined;
  };
  return (await Promise.all(jobIds.map(read))).filter((job) => job !== undefined);
}

/** Ids of the oldest jobs of these states, so many of each. */
export const firstIds = (
  queue: Queue,
  states: readonly UnfinishedState[],
  limit: number,
): Promise<string[]> => queue.getRanges([...states], 0, limit - 1, true);

/** Implements `QueueStore.lostRuns`; the connection must have been prepared by `defineReadJobs`. */
export async function lostRuns(
  redis: RedisConnection,
  queue: Queue,
  jobIds: readonly string[],
): Promise<LostRuns[]> {
  return (await findLost(redis, queue, jobIds)).map(toLostRuns);
}

/** The jobs of one command, which is short. */
const maxCounted = 250;

/** Implements `QueueStore.lostRunsOfOldest`. To BullMQ, a job is as old as its last start, unless it has a priority. */
export async function lostRunsOfOldest(
  redis: RedisConnection,
  queue: Queue,
  { state, addedBefore, limit }: OldestJobs,
): Promise<LostRuns[]> {
  const ids = await firstIds(queue, [state], limit);
  const lost: LostRuns[] = [];
  while (ids.length > 0)
    for (const found of await findLost(redis, queue, ids.splice(0, maxCounted))) {
      const [, , runs, addedAt, startedAt] = found;
      const since = state === 'prioritized' ? addedAt : (startedAt ?? addedAt);
      if (runs > 0 && Number(since) <= addedBefore) lost.push(toLostRuns(found));
    }
  return lost;
}

const findLost = async (redis: RedisConnection, queue: Queue, jobIds: readonly string[]): Promise<Lost[]> =>
  jobIds.length === 0 ? [] : redis.lostRuns(queue.toKey(''), queue.toKey('active'), ...jobIds);

const toLostRuns = ([id, name, lost, addedAt]: Lost): LostRuns => ({
  id,
  name,
  addedAt: Number(addedAt),
  lost,
});

function toStoredJob(found: Found): StoredJob {
  if (found === 'taken before') return { state: 'queued', wasTaken: true };
  if (typeof found === 'string') return { state: found };
  const [finishedOn, failed, returnValue] = found;
  if (failed === 1) return { state: 'failed', finishedOn: Number(finishedOn) };
  return { state: 'completed', finishedOn: Number(finishedOn), returnValue: parse(returnValue) };
}

/** BullMQ stores the return value of a job as JSON; anything else counts as none. */
function parse(json: string | null): unknown {
  try {
    return JSON.parse(json ?? 'null');
  } catch {
    return undefined;
  }
}
