import type { Result } from 'ioredis';
import { withTimeout } from '../../runtime/retry.js';
import type { BlobName, BlobStore } from '../blobs.js';
import type { RedisConnection } from './redis-connection.js';

declare module 'ioredis' {
  interface RedisCommander<Context> {
    /** See `keepScript`. */
    keepChunk(key: string, ttlMs: number, ...bytes: Buffer[]): Result<0 | 1, Context>;
  }
}

/** A command that a cluster's masters do not take waits without an end of its own. */
const timeoutMs = 10_000;

/** Returns 0 where the chunk is not there, and not given either. Its end is never moved to an earlier time. */
const keepScript = `
  local left = redis.call('PTTL', KEYS[1])
  if left >= tonumber(ARGV[1]) then return 1 end
  if ARGV[2] then redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[1])
  elseif left >= 0 then redis.call('PEXPIRE', KEYS[1], ARGV[1])
  else return 0 end
  return 1`;

/** `connect` is called for the first blob; a cluster spreads the chunks, so each command has the key of one. */
export function openRedisBlobs(
  connect: () => RedisConnection,
  named: (key: string) => string,
): BlobStore & { close(): void } {
  let opened: RedisConnection | undefined;
  const open = () => {
    const redis = connect();
    redis.defineCommand('keepChunk', { numberOfKeys: 1, lua: keepScript });
    return redis;
  };
  const redis = () => {
    opened ??= open();
    return opened;
  };
  const ofAll = <T>(chunks: number, command: (n: number) => Promise<T>): Promise<T[]> =>
    withTimeout(timeoutMs, Promise.all(Array.from({ length: chunks }, (_, n) => command(n))));
  // All have the name of images, which came first.
  const keyOf = ({ user, key }: BlobName, n: number) => named(`image.${user}.${key}.${n}`);
  return {
    extend: async (name, { chunks, ttlMs }) => {
      const kept = await ofAll(chunks, (n) => redis().keepChunk(keyOf(name, n), ttlMs));
      return new Set(kept.flatMap((isThere, n) => (isThere === 1 ? n : [])));
    },
    write: async (name, { n, bytes, ttlMs }) =>
      void (await withTimeout(timeoutMs, redis().keepChunk(keyOf(name, n), ttlMs, bytes))),
    read: (name, { chunks }) =>
      ofAll(chunks, async (n) => (await redis().getBuffer(keyOf(name, n))) ?? undefined),
    remove: async (name, { chunks }) => void (await ofAll(chunks, (n) => redis().unlink(keyOf(name, n)))),
    removeEnded: async () => undefined,
    close: () => opened?.disconnect(),
  };
}
