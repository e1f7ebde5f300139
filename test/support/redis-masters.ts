import { once } from 'node:events';
import { Cluster, type Redis } from 'ioredis';
import { connectRedis, type RedisConnection } from '../../shared/queue/stores/redis-connection.js';
import { parseRedisUrl } from '../../shared/urls/redis-url.js';

/** Redis as the programs reach it, and each server by itself that keys are written to. */
export interface OpenRedis {
  readonly redis: RedisConnection;
  readonly masters: readonly Redis[];
  /** What the keys begin with that this URL is for; empty when all are. */
  readonly prefix: string;
}

/** Connects to what the URL names, as it is now: who comes after a failover is not among the masters. */
export async function openRedis(url: string): Promise<OpenRedis> {
  const address = parseRedisUrl(url);
  const redis = connectRedis(address, 'blocking');
  redis.on('error', () => undefined);
  await once(redis, 'ready');
  const masters = redis instanceof Cluster ? redis.nodes('master') : [redis];
  return { redis, masters, prefix: address.prefix ?? '' };
}
