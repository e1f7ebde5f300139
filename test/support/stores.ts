import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { inject } from 'vitest';
import { createDatabase, type Schema } from './postgres-server.js';

/** The servers that all files of a run share: one PostgreSQL, and one Redis for the projects that need it. */
export interface Servers {
  /** URL of the PostgreSQL server. */
  readonly postgres: string;
  /** URL of the Redis server, which has 1,024 databases; undefined in projects that run on PostgreSQL alone. */
  readonly redis: string | undefined;
}

declare module 'vitest' {
  interface ProvidedContext {
    servers: Servers;
  }
}

/** A server that has the queue, and the PostgreSQL server for the blog, users and tokens. */
export type StoreServer = {
  readonly kind: StoreKind;
  readonly url: string;
  /** The same server where the queue lives in PostgreSQL. */
  readonly databaseUrl: string;
  /** Of several Redis servers: they have no numbered databases, so each deployment gets a key prefix. */
  readonly topology?: 'cluster' | 'sentinel';
};

export type StoreKind = 'postgres' | 'redis';

/** The run's servers as a store of this kind. Throws where the project has no Redis. */
export function storeOf(kind: StoreKind): StoreServer {
  const { postgres, redis } = inject('servers');
  const url = kind === 'redis' ? redis : postgres;
  if (url === undefined) throw new Error('only the projects faults and release have a Redis');
  return { kind, url, databaseUrl: postgres };
}

/** The stores that the project's run has, for `describe.each`. */
export const findStores = (): StoreServer[] => [
  storeOf('postgres'),
  ...(inject('servers').redis === undefined ? [] : [storeOf('redis')]),
];

/** How many databases the run's Redis has. */
const redisDatabases = 1024;

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
