import type { Redis } from 'ioredis';
import pg from 'pg';
import { openRedis } from './redis-masters.js';

/** Names of the keys (Redis) or tables (PostgreSQL) of the queue's store that contain this text. */
export function whereIn(stores: Record<string, string>, text: string): Promise<string[]> {
  const { REDIS_URL, DATABASE_URL = '' } = stores;
  return REDIS_URL === undefined ? tablesWith(DATABASE_URL, text) : keysWith(REDIS_URL, text);
}

async function keysWith(url: string, text: string): Promise<string[]> {
  const { redis, masters, prefix } = await openRedis(url);
  try {
    const found: string[] = [];
    for (const master of masters)
      for await (const keys of master.scanStream({ match: `${prefix}*`, count: 1000 }) as AsyncIterable<
        string[]
      >) {
        for (const key of keys) {
          const contents = JSON.stringify([key, await readKey(master, key)]);
          if (contents.includes(text)) found.push(key);
        }
      }
    return [...new Set(found)].sort();
  } finally {
    redis.disconnect();
  }
}

/** Read by the key's type, because a dump may be compressed. */
async function readKey(redis: Redis, key: string): Promise<unknown> {
  const type = await redis.type(key);
  switch (type) {
    case 'string':
      return redis.get(key);
    case 'hash':
      return redis.hgetall(key);
    case 'list':
      return redis.lrange(key, 0, -1);
    case 'set':
      return redis.smembers(key);
    case 'zset':
      return redis.zrange(key, '0', '-1');
    case 'stream':
      return redis.xrange(key, '-', '+');
    case 'none':
      return undefined;
    default:
      throw new Error(`a key of type ${type}`);
  }
}

async function tablesWith(url: string, text: string): Promise<string[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<{ name: string }>(`
      select format('%I.%I', table_schema, table_name) as name from information_schema.tables
      where table_type = 'BASE TABLE' and table_schema not in ('pg_catalog', 'information_schema') order by 1`);
    const found: string[] = [];
    for (const { name } of rows) {
      const query = `select from ${name} as it where strpos(it::text, $1) > 0 limit 1`;
      if ((await client.query(query, [text])).rowCount !== 0) found.push(name);
    }
    return found;
  } finally {
    await client.end();
  }
}
