import type { Result } from 'ioredis';
import { storeTimeoutMs, withTimeout } from '../../runtime/retry.js';
import { maxOutboxEntries, type Outbox, OutboxFull } from '../queue-store.js';
import type { RedisConnection } from './redis-connection.js';

declare module 'ioredis' {
  interface RedisCommander<Context> {
    /** See `appendScript`. */
    appendToOutbox(key: string, max: number, ...entries: string[]): Result<0 | 1, Context>;
  }
}

/** Returns 0 where there is no room for all. */
const appendScript = `
  if redis.call('XLEN', KEYS[1]) + #ARGV - 1 > tonumber(ARGV[1]) then return 0 end
  for n = 2, #ARGV do redis.call('XADD', KEYS[1], '*', 'entry', ARGV[n]) end
  return 1`;

/** One stream. An id begins with the server's time. */
export function openRedisOutbox(redis: RedisConnection, key: string): Outbox {
  redis.defineCommand('appendToOutbox', { numberOfKeys: 1, lua: appendScript });
  const inTime = <T>(command: Promise<T>): Promise<T> => withTimeout(storeTimeoutMs, command);
  return {
    append: async (entries) => {
      const hasRoom = await inTime(redis.appendToOutbox(key, maxOutboxEntries, ...entries));
      if (hasRoom === 0) throw new OutboxFull('the outbox is full');
    },
    read: async ({ limit, after }) => {
      const start = after === undefined ? '-' : `(${after}`;
      const found = await inTime(redis.xrange(key, start, '+', 'COUNT', limit));
      return found.map(([id, [, entry = '']]) => ({ id, entry }));
    },
    remove: async (ids) => {
      if (ids.length > 0) await inTime(redis.xdel(key, ...ids));
    },
    size: async () => {
      const first = redis.xrange(key, '-', '+', 'COUNT', 1);
      const [entries, [oldest]] = await inTime(Promise.all([redis.xlen(key), first]));
      return { entries, oldestAt: oldest && Number.parseInt(oldest[0], 10) };
    },
  };
}
