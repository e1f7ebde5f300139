import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { Redis } from 'ioredis';
import { freePort } from '../../dev/free-port.js';
import type { Lifecycle } from '../../shared/runtime/lifecycle.js';
import { startDatabase } from './embedded-store.js';
import type { RunningStore, StoreChoice } from './store.js';
import { parseRedisCounts, type StoreCounts } from './store-counts.js';

const programs = ['redis-server', 'valkey-server'];

/** What a server of our own keeps on disk: nothing, or each write within a second, as it should be in production. */
export type Persistence = 'none' | 'everysec';

const persistenceOptions: Readonly<Record<Persistence, readonly string[]>> = {
  none: ['--appendonly', 'no'],
  everysec: ['--appendonly', 'yes', '--appendfsync', 'everysec'],
};

const persistenceTitles: Readonly<Record<Persistence, string>> = {
  none: 'without persistence',
  everysec: 'with AOF, fsync each second',
};

/** The Redis at the URL, else a server of our own from the PATH. Throws when there is neither. */
export async function findRedisStore(
  url: string | undefined,
  persistence: Persistence,
): Promise<StoreChoice> {
  return url === undefined ? findOwn(persistence) : findRunning(url);
}

function findOwn(persistence: Persistence): StoreChoice {
  for (const program of programs) {
    const version = versionOf(program);
    if (version !== undefined) {
      return {
        name: 'redis',
        servedBy: `${version} (${program} of the PATH, started for the benchmark ${persistenceTitles[persistence]})`,
        open: (lifecycle, dir) => startServer({ program, persistence, lifecycle, dir }),
      };
    }
  }
  throw new Error(`no --redis-url, no REDIS_URL, and no ${programs.join(' or ')} on the PATH`);
}

function versionOf(program: string): string | undefined {
  try {
    return execFileSync(program, ['--version'], { encoding: 'utf8' }).split(' sha=')[0];
  } catch {
    return undefined;
  }
}

interface ServerDeps {
  program: string;
  persistence: Persistence;
  lifecycle: Lifecycle;
  dir: string;
}

async function startServer({ program, persistence, lifecycle, dir }: ServerDeps): Promise<RunningStore> {
  const port = await freePort();
  const place = ['--port', `${port}`, '--bind', '127.0.0.1', '--dir', dir];
  const options = [...place, '--save', '', ...persistenceOptions[persistence]];
  const server = spawn(program, options, { stdio: 'ignore' });
  const ended = once(server, 'exit');
  lifecycle.opened('redis', server, async () => {
    server.kill('SIGTERM');
    await ended;
  });
  const url = `redis://127.0.0.1:${port}`;
  const failed = ended.then(() => Promise.reject(new Error(`${program} ended at once`)));
  failed.catch(() => undefined);
  await Promise.race([ask(url, (redis) => redis.ping()), failed]);
  const count = openCounter(url, lifecycle);
  return { variables: await variablesFor(url, lifecycle, dir), pid: server.pid, count };
}

/** Asks on a connection of its own, and leaves out what that itself takes. */
function openCounter(url: string, lifecycle: Lifecycle): () => Promise<StoreCounts> {
  const redis = lifecycle.opened('counting', new Redis(url), (open) => open.disconnect());
  let ownBytesOut = 0;
  return async () => {
    const info = await redis.info('stats', 'commandstats');
    const counts = parseRedisCounts(info);
    const bytesOut = counts.bytesOut - ownBytesOut;
    ownBytesOut += Buffer.byteLength(info);
    return { ...counts, bytesOut };
  };
}

/** The blog, users and tokens are in PostgreSQL wherever the queue lives. */
async function variablesFor(
  url: string,
  lifecycle: Lifecycle,
  dir: string,
): Promise<RunningStore['variables']> {
  return { REDIS_URL: url, DATABASE_URL: (await startDatabase(lifecycle, dir)).url };
}

async function findRunning(url: string): Promise<StoreChoice> {
  const facts = await ask(url, (redis) => redis.info('server'));
  await assertEmpty(url);
  const version = /^(?:valkey|redis)_version:(.*)$/m.exec(facts)?.[1]?.trim() ?? 'unknown version';
  return {
    name: 'redis',
    servedBy: `Redis ${version} at ${new URL(url).host}, running already: its CPU and memory are not measured`,
    open: (lifecycle, dir) => borrow(url, lifecycle, dir),
  };
}

/** On a database in use the jobs of a real deployment would mix with ours. */
async function assertEmpty(url: string): Promise<void> {
  const keys = await ask(url, (redis) => redis.dbsize());
  if (keys > 0) {
    throw new Error(
      `the database of ${new URL(url).host} is not empty; name an empty one with --redis-url redis://…/<number>`,
    );
  }
}

async function borrow(url: string, lifecycle: Lifecycle, dir: string): Promise<RunningStore> {
  lifecycle.opened('redis database', url, () => ask(url, removeOurKeys));
  return { variables: await variablesFor(url, lifecycle, dir), pid: undefined };
}

async function removeOurKeys(redis: Redis): Promise<void> {
  for (const pattern of ['bull:*', 'quillgate*']) {
    for await (const keys of redis.scanStream({ match: pattern, count: 1000 })) {
      if (keys.length > 0) await redis.unlink(...(keys as string[]));
    }
  }
}

/** Tries to reach it for about five seconds. */
async function ask<T>(url: string, question: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis(url, {
    retryStrategy: (attempt) => (attempt > 50 ? null : 100),
    connectTimeout: 5000,
    maxRetriesPerRequest: null,
  });
  let trouble: Error | undefined;
  redis.on('error', (error) => {
    trouble = error;
  });
  try {
    return await question(redis);
  } catch (cause) {
    // Without the URL, which may hold a password.
    throw new Error(`no answer from ${new URL(url).host}: ${(trouble ?? (cause as Error)).message}`, {
      cause,
    });
  } finally {
    redis.disconnect();
  }
}
