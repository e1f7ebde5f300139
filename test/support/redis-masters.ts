import { once } from 'node:events';
import { Cluster, type Redis } from 'ioredis';
import { connectRedis, type RedisConnection } from '../../shared/queue/stores/redis-connection.js';
import { parseRedisUrl } from '../../shared/urls/redis-url.js';

/** Redis as the programs reach it, and each of its masters. */
export interface OpenRedis {
  readonly redis: RedisConnection;
  readonly masters: readonly Redis[];
  /** The prefix of the URL's keys; empty if it has none. */
  readonly prefix: string;
}

/** Connects to the servers of the URL as they are now: a master after a later failover is not included. */
export async function openRedis(url: string): Promise<OpenRedis> {
  const address = parseRedisUrl(url);
  const redis = connectRedis(address, 'blocking');
  redis.on('error', () => undefined);
  await once(redis, 'ready');
  const masters = redis instanceof Cluster ? redis.nodes('master') : [redis];
  return { redis, masters, prefix: address.prefix ?? '' };
}
