import { Redis } from 'ioredis';
import pg from 'pg';

/** Takes the relay's registrations away in the store, and who listens there, so that what is told reaches nobody. */
export interface Forgetting {
  again(): Promise<void>;
  close(): Promise<void>;
}

/** Opens the store that the variables name, as `shared/queue.ts` chooses it. */
export async function forgetRelayNodes({
  REDIS_URL,
  DATABASE_URL,
}: Record<string, string>): Promise<Forgetting> {
  if (REDIS_URL === undefined) return inPostgres(DATABASE_URL ?? '');
  const redis = new Redis(REDIS_URL);
  return {
    again: async () => {
      // Nobody is told without the one; without the other every node registers anew at its next heartbeat.
      await redis.unlink('bull::relay:{quillgate}:subs', 'bull::relay:{quillgate}:nodes');
      await redis.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    },
    close: async () => redis.disconnect(),
  };
}

async function inPostgres(url: string): Promise<Forgetting> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return {
    again: async () => {
      await client.query('DELETE FROM bullmq.relay_node');
      await client.query(endListeners);
    },
    close: () => client.end(),
  };
}

/** A listener holds the lock of its topic, whose key has 64 bits; those of BullMQ's have 32, or are two. */
const endListeners = `
  SELECT pg_terminate_backend(pid) FROM pg_locks
  WHERE locktype = 'advisory' AND objsubid = 1 AND classid::bigint NOT IN (0, 4294967295) AND mode = 'ExclusiveLock'`;
