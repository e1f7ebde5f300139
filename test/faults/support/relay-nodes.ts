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
    again: async () => void (await client.query('DELETE FROM bullmq.relay_node')),
    close: () => client.end(),
  };
}
