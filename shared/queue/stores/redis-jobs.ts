import type { Queue } from 'bullmq';
import type { Result } from 'ioredis';
import type { JobTimes, StoredJob } from '../queue-store.js';
import type { RedisConnection } from './redis-connection.js';

declare module 'ioredis' {
  interface RedisCommander<Context> {
    /** See `script`. */
    readJobs(queue: string, ...jobIds: string[]): Result<Found[], Context>;
  }
}

type Found = 'unknown' | 'queued' | 'taken before' | 'running' | 'unreadable' | EndedJob;
type EndedJob = readonly [finishedOn: string, failed: 0 | 1, returnValue: string | null];

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

/** Defines on the connection the command that `readJobs` needs. */
export function defineReadJobs(redis: RedisConnection): void {
  redis.defineCommand('readJobs', { numberOfKeys: 1, lua: script });
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
  const fields = ['timestamp', 'processedOn', 'finishedOn', 'ats'];
  const found = await Promise.all(jobIds.map((id) => redis.hmget(queue.toKey(id), ...fields)));
  const jobs = found.map((texts) => texts.map((text) => (text ? Number(text) : null)));
  return jobs.flatMap(([addedAt = null, startedAt = null, endedAt = null, attempts], n) =>
    addedAt ? { id: jobIds[n] ?? '', addedAt, startedAt, endedAt, attempts: attempts ?? 0 } : [],
  );
}

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
