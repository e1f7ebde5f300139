import { Queue, Relay } from 'bullmq';
import type { Result } from 'ioredis';
import type { Log } from '../../runtime/log.js';
import { parseRedisUrl, type RedisAddress } from '../../urls/redis-url.js';
import { maximumRateLimitDelay } from '../patches/main-loop.js';
import { defineTakeJobs, RedisWorker } from '../patches/redis-worker.js';
import type { QueueDepth, RecordStore, StoreParts } from '../queue-store.js';
import type { StoreClock } from './clock-skew.js';
import { openRedisBlobs } from './redis-blobs.js';
import {
  connectRedis,
  maxBlockMs,
  type OutageMode,
  type RedisConnection,
  RedisPubSub,
} from './redis-connection.js';
import { findRedisMisconfiguration } from './redis-defects.js';
import { defineReadJobs, firstIds, lostRuns, lostRunsOfOldest, readJobs, readTimes } from './redis-jobs.js';
import { openRedisOutbox } from './redis-outbox.js';

declare module 'ioredis' {
  interface RedisCommander<Context> {
    /** See `replaceScript`. */
    replaceRecord(key: string, expected: string, value: string, ...ttlMs: number[]): Result<number, Context>;
    /** See `measureScript`. */
    measureQueue(
      ...keys: [wait: string, prioritized: string, active: string, job: string]
    ): Result<[waiting: number, active: number, ...addedAt: number[]], Context>;
  }
}

/** Opens the queue's store in Redis: a single server, Sentinel or a cluster. */
export function openRedisStore(url: string, log: Log, clock: StoreClock): StoreParts {
  const address = parseRedisUrl(url);
  const keys = namesOfKeys(address);
  const isCluster = address.topology === 'cluster';
  const connect = (mode: OutageMode): RedisConnection => {
    const redis = connectRedis(address, mode);
    redis.on('error', (error) => log.debug({ err: error }, 'redis connection'));
    return redis;
  };
  const producer = connect('fail-fast');
  // Shared by the workers and the relay.
  const blocking = connect('blocking');
  const blobs = openRedisBlobs(() => connect('bulk'), keys.record);
  producer.defineCommand('measureQueue', { numberOfKeys: 4, lua: measureScript });
  defineReadJobs(producer);
  defineTakeJobs(blocking);
  const queueSettings = {
    connection: producer,
    skipWaitingForReady: true,
    skipVersionCheck: true,
    skipMetasUpdate: true,
  };
  return {
    kind: 'redis',
    records: openRecords(producer, keys.record, isCluster),
    blobs,
    outbox: openRedisOutbox(producer, keys.record('outbox')),
    findDefect: () => findRedisMisconfiguration(producer, address, clock),
    createQueue: (name) => new Queue(name, { ...queueSettings, prefix: keys.queuePrefix(name) }),
    createWorker: (name, processor, options) => {
      const prefix = keys.queuePrefix(name);
      return new RedisWorker(name, processor, { ...options, ...workerDelays, prefix, connection: blocking });
    },
    createRelay: (options) =>
      new Relay({ ...options, prefix: keys.relayPrefix, connection: blocking, blockTimeout: maxBlockMs }),
    // Not in a cluster: PUBLISH reaches all of it, but counts the subscribers of one node.
    createPubSub: () =>
      isCluster ? undefined : new RedisPubSub({ publisher: blocking, connect, log }, keys.channel),
    readJobs: (queue, jobIds) => readJobs(producer, queue, jobIds),
    readTimes: (queue, jobIds) => readTimes(producer, queue, jobIds),
    // In the order in which workers take them.
    nextIds: async (queue, limit) => (await firstIds(queue, ['wait', 'prioritized'], limit)).slice(0, limit),
    lostRuns: (queue, jobIds) => lostRuns(producer, queue, jobIds),
    lostRunsOfOldest: (queue, asked) => lostRunsOfOldest(producer, queue, asked),
    measure: (queue) => measure(producer, queue),
    wake: async (queue) => void (await producer.zadd(queue.toKey('marker'), 0, '0')),
    forgetEvents: (queue) => forgetEvents(producer, queue),
    close: async () => {
      producer.disconnect();
      blocking.disconnect();
      blobs.close();
    },
  };
}

interface KeySettings extends Pick<RedisAddress, 'topology' | 'prefix'> {
  database?: number;
}

/**
 * Names of the keys of one deployment. A cluster places keys by the text in braces: the keys of one queue must be in
 * one slot, as scripts require, while the providers' queues are spread over the masters (these names put four queues
 * and the relay on all of three). Without a cluster there are no braces: other names than before would strand the jobs
 * of a running deployment.
 */
export function namesOfKeys({ topology, prefix, database = 0 }: KeySettings) {
  const start = prefix ?? 'bull';
  const recordStart = prefix ?? 'quillgate';
  return {
    /** BullMQ's prefix for this queue. */
    queuePrefix: (queue: string): string =>
      topology === 'cluster' ? `${start}:{quillgate:${queue}}` : start,
    /** BullMQ's prefix for the relay, which itself keeps a namespace in one slot. */
    relayPrefix: start,
    /** The key of a record; each is used alone, so a cluster may spread them. */
    record: (key: string): string => `${recordStart}:record:${key}`,
    /** The channel of a topic. Channels are the same in all databases of a server. */
    channel: (topic: string): string => `${recordStart}:${database}:${topic}`,
  };
}

/** Milliseconds before a failed main loop tries again; the default of 15 s would be an outage by itself. */
const runRetryDelay = 500;

/** Seconds between the looks of an idle worker: Redis wakes one worker for a job, and that one may be frozen. */
const drainDelay = 1;

const workerDelays = { runRetryDelay, drainDelay, maximumRateLimitDelay };

/** Empties BullMQ's stream of events, and has each job that is added do so; its own `trimEvents` is approximate. */
async function forgetEvents(redis: RedisConnection, queue: Queue): Promise<void> {
  await redis.hset(queue.toKey('meta'), 'opts.maxLenEvents', 0);
  await redis.xtrim(queue.toKey('events'), 'MAXLEN', 0);
}

/** Gives the lengths, and when the job at either head was added, or 0. All its keys are in one slot of a cluster. */
const measureScript = `
  local function addedAt(id) return tonumber(id and redis.call('HGET', KEYS[4] .. id, 'timestamp') or 0) end
  return {
    redis.call('LLEN', KEYS[1]) + redis.call('ZCARD', KEYS[2]), redis.call('LLEN', KEYS[3]),
    addedAt(redis.call('LINDEX', KEYS[1], -1)), addedAt(redis.call('ZRANGE', KEYS[2], 0, 0)[1]) }`;

async function measure(redis: RedisConnection, queue: Queue): Promise<QueueDepth> {
  const [waiting, active, ...heads] = await redis.measureQueue(
    queue.toKey('wait'),
    queue.toKey('prioritized'),
    queue.toKey('active'),
    queue.toKey(''),
  );
  const addedAt = heads.filter((at) => at > 0);
  return { waiting, active, oldestAddedAt: addedAt.length > 0 ? Math.min(...addedAt) : undefined };
}

/** Returns 1 when the record was the expected one. One key per command, because records are spread over a cluster. */
const replaceScript = `
  if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
  if ARGV[3] then redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) else redis.call('SET', KEYS[1], ARGV[2]) end
  return 1`;

function openRecords(redis: RedisConnection, named: (key: string) => string, isSpread: boolean): RecordStore {
  redis.defineCommand('replaceRecord', { numberOfKeys: 1, lua: replaceScript });
  const read = async (key: string) => (await redis.get(named(key))) ?? undefined;
  return {
    read,
    // One command each where records are spread over a cluster; they are pipelined.
    readAll: async (keys) =>
      isSpread || keys.length === 0
        ? Promise.all(keys.map(read))
        : (await redis.mget(...keys.map(named))).map((value) => value ?? undefined),
    create: async (key, { value, ttlMs }) => {
      const created =
        ttlMs === undefined
          ? redis.set(named(key), value, 'NX')
          : redis.set(named(key), value, 'PX', ttlMs, 'NX');
      return (await created) === 'OK';
    },
    replace: async (key, { expected, value, ttlMs }) =>
      (await redis.replaceRecord(named(key), expected, value, ...(ttlMs === undefined ? [] : [ttlMs]))) === 1,
    removeEnded: async () => undefined,
  };
}
