import { Redis } from 'ioredis';
import pg from 'pg';

/** Removes the relay's registrations and its listeners in the store, so that messages are lost; `again` does it. */
export async function forgetRelayNodes({ REDIS_URL, DATABASE_URL }: Record<string, string>) {
  if (REDIS_URL === undefined) return inPostgres(DATABASE_URL ?? '');
  const redis = new Redis(REDIS_URL);
  return {
    again: async () => {
      // Without these no node is found; without the others every node registers anew at its next heartbeat.
      await redis.unlink('bull::relay:{quillgate}:subs', 'bull::relay:{quillgate}:nodes');
      await redis.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    },
    close: async () => redis.disconnect(),
  };
}

async function inPostgres(url: string) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return {
    again: async () => void (await client.query('DELETE FROM bullmq.relay_node')),
    close: () => client.end(),
  };
}
