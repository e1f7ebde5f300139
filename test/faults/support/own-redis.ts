import { inject } from 'vitest';
import { type RedisProcess, startRedisProcess } from '../../support/redis-process.js';
import type { StoreServer } from '../../support/stores.js';
import type { Books } from './books.js';

/** A Redis server that one case alone uses, with an append-only file, so that it can be done anything to. */
export interface OwnRedis extends RedisProcess {
  /** To start a deployment on; others use the same database. */
  readonly store: StoreServer;
  configure(parameter: string, value: string): Promise<void>;
}

/** Starts a server from the PATH; it ends with the case. */
export async function startOwnRedis(books: Books): Promise<OwnRedis> {
  const redis = await startRedisProcess();
  books.release(redis.stop);
  const url = `redis://127.0.0.1:${redis.port}`;
  return {
    ...redis,
    store: { kind: 'redis', url, databaseUrl: inject('store').databaseUrl },
    configure: async (parameter, value) => void (await redis.command('CONFIG', 'SET', parameter, value)),
  };
}
