import pg from 'pg';
import { openRedis } from '../../support/redis-masters.js';

/** Ends all other connections to the queue's store that the variables name; `killAll` gives how many there were. */
export async function openConnectionKiller({ REDIS_URL, DATABASE_URL }: Record<string, string>) {
  if (REDIS_URL === undefined) return inPostgres(DATABASE_URL ?? '');
  const { redis, masters } = await openRedis(REDIS_URL);
  return {
    killAll: async () => {
      const killed = masters.map((master) =>
        master.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes'),
      );
      return (await Promise.all(killed)).reduce((sum: number, some) => sum + Number(some), 0);
    },
    close: async () => redis.disconnect(),
  };
}

async function inPostgres(url: string) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const others = 'datname = current_database() AND pid <> pg_backend_pid()';
  return {
    killAll: async () => {
      const { rowCount } = await client.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${others}`,
      );
      return rowCount ?? 0;
    },
    close: () => client.end(),
  };
}
