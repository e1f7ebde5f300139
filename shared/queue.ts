import { setTimeout as delay } from 'node:timers/promises';
import {
  assertSchemaCompatibility,
  createPostgresBackend,
  createPostgresRelayBackend,
  type PgPool,
  type Processor,
  Queue,
  Relay,
  type RelayOptions,
  runMigrations,
  SchemaMigrationRequiredError,
  Worker,
  type WorkerOptions,
  withBackend,
} from 'bullmq';
import { Redis, type RedisOptions } from 'ioredis';
import pg from 'pg';
import type { Config } from './config.js';
import type { Log } from './log.js';
import { parsePostgresUrl } from './postgres-url.js';
import { within } from './within.js';

/**
 * Where the queue lives: Redis when `REDIS_URL` is set, else PostgreSQL. This file and `relay.ts` are the only ones
 * that know which; everyone else sees BullMQ's classes, ready to use, and one `QueueStore`.
 */
export interface QueueStore {
  readonly kind: 'redis' | 'postgres';
  /** Resolves when the store can be used; throws what is wrong otherwise. Answers within three seconds. */
  check(): Promise<void>;
  /** Resolves with true at the first successful `check`, with false when the signal aborts before. */
  whenReady(signal: AbortSignal): Promise<boolean>;
  /** For adding jobs and reading their records; its commands fail fast while the store is down. */
  createQueue(name: string): Queue;
  /** For running jobs; rides out an outage of the store. */
  createWorker(name: string, processor: Processor, options: WorkerTuning): Worker;
  /** For telling between processes; see `relay.ts`. */
  createRelay(options: RelayTuning): Relay;
  close(): Promise<void>;
}

type WorkerTuning = Omit<WorkerOptions, 'connection'>;
type RelayTuning = Omit<RelayOptions, 'connection' | 'backend'>;

/** A defect of the store that waiting does not mend; its message is safe to show. */
export class StoreDefect extends Error {
  override readonly name = 'StoreDefect';
}

/** Opens the store that the configuration names. Never throws for an unreachable one: `check` tells. */
export function openQueueStore(config: Config, log: Log): QueueStore {
  if (config.REDIS_URL !== undefined) return openRedisStore(config.REDIS_URL, log);
  if (config.DATABASE_URL !== undefined) return openPostgresStore(config.DATABASE_URL, log);
  throw new TypeError('neither REDIS_URL nor DATABASE_URL is set');
}

/** Brings the queue's schema in PostgreSQL up to date; does nothing for Redis, which has none. */
export async function migrateQueueStore(config: Config): Promise<void> {
  if (config.REDIS_URL !== undefined || config.DATABASE_URL === undefined) return;
  const client = new pg.Client({ ...parsePostgresUrl(config.DATABASE_URL), connectionTimeoutMillis: 5000 });
  await client.connect();
  try {
    await runMigrations(client, schema);
  } finally {
    await client.end();
  }
}

const checkTimeoutMs = 2500;
const checkIntervalMs = 250;
const closingMs = 1000;

/** Reconnects within half a second; BullMQ's own strategy was measured to come back 18 s late. */
const retryStrategy = (attempt: number): number => Math.min(50 * 2 ** attempt, 500) + Math.random() * 50;

/** A main loop that failed tries again after this long; the default of 15 s would be felt as an outage. */
const runRetryDelay = 500;

type RedisTuning = Pick<RedisOptions, 'enableOfflineQueue' | 'maxRetriesPerRequest' | 'commandTimeout'>;

function openRedisStore(url: string, log: Log): QueueStore {
  const connections: Redis[] = [];
  const connect = (options: RedisTuning): Redis => {
    const redis = new Redis(url, { ...options, retryStrategy, connectTimeout: 2000 });
    redis.on('error', (error) => log.debug({ err: error }, 'redis connection'));
    connections.push(redis);
    return redis;
  };
  // Without these an add() hangs while Redis is down or frozen instead of failing.
  const failing: RedisTuning = { enableOfflineQueue: false, maxRetriesPerRequest: 1, commandTimeout: 2000 };
  const producer = connect(failing);
  // Shared by workers and relay: blocking reads must wait, so no command timeout here.
  const patient = connect({ maxRetriesPerRequest: null });

  const check = async () => {
    const facts = await producer.info();
    const policy = /^maxmemory_policy:(\w[\w-]*)/m.exec(facts)?.[1];
    if (policy !== undefined && policy !== 'noeviction') {
      throw new StoreDefect(`Redis may evict jobs: set maxmemory-policy to noeviction (it is ${policy})`);
    }
  };
  return {
    kind: 'redis',
    check,
    whenReady: (signal) => until(check, signal, log),
    createQueue: (name) =>
      logged(
        new Queue(name, {
          connection: producer,
          skipWaitingForReady: true,
          skipVersionCheck: true,
          skipMetasUpdate: true,
        }),
        log,
      ),
    createWorker: (name, processor, options) =>
      logged(new Worker(name, processor, { ...options, connection: patient, runRetryDelay }), log),
    createRelay: (options) => logged(new Relay({ ...options, connection: patient }), log),
    close: async () => {
      for (const connection of connections) connection.disconnect();
    },
  };
}

const schema = 'bullmq';

function openPostgresStore(url: string, log: Log): QueueStore {
  const postgres = withBackend(createPostgresBackend);
  const pool = new pg.Pool({
    ...parsePostgresUrl(url),
    options: `-c search_path=${schema}`,
    max: 20,
    connectionTimeoutMillis: 2000,
    query_timeout: 10_000,
    keepAlive: true,
    // About half an hour: a new connection may lead to the server that has taken over.
    maxLifetimeSeconds: 1700 + Math.round(200 * Math.random()),
    application_name: 'quillgate',
  });
  pool.on('error', (error) => log.debug({ err: error }, 'postgres connection'));
  // The same object: BullMQ describes the part of pg.Pool it uses in types of its own that pg's overloads do not match.
  const connection = pool as unknown as PgPool;

  const check = () =>
    within(
      checkTimeoutMs,
      assertSchemaCompatibility(connection, schema).then(() => undefined),
    );
  return {
    kind: 'postgres',
    check,
    whenReady: (signal) => until(check, signal, log),
    createQueue: (name) => logged(new postgres.Queue(name, { connection }) as unknown as Queue, log),
    createWorker: (name, processor, options) =>
      logged(
        new postgres.Worker(name, processor, { ...options, connection, runRetryDelay }) as unknown as Worker,
        log,
      ),
    createRelay: (options) =>
      logged(
        new Relay({ ...options, connection, backend: createPostgresRelayBackend }) as unknown as Relay,
        log,
      ),
    // It waits for every query, and a silent server answers none.
    close: () => within(closingMs, pool.end()).catch(() => undefined),
  };
}

/** BullMQ reports connection trouble as events; unheard, they would end the process. */
function logged<T extends { on(event: 'error', listener: (error: Error) => void): unknown }>(
  part: T,
  log: Log,
): T {
  part.on('error', (error) => log.debug({ err: error }, 'queue store'));
  return part;
}

/** Says why it waits, once for every reason: a wrong password looks like an outage otherwise. */
async function until(check: () => Promise<void>, signal: AbortSignal, log: Log): Promise<boolean> {
  const told = new Set<string>();
  while (!signal.aborted) {
    try {
      await check();
      return true;
    } catch (error) {
      const reason = reasonOf(error);
      if (!told.has(reason)) log.warn({ reason }, 'waiting for the queue store');
      told.add(reason);
      await delay(checkIntervalMs, undefined, { signal }).catch(() => undefined);
    }
  }
  return false;
}

/** What is wrong with a store, in words that are safe to show: other messages can hold its address and password. */
export function reasonOf(error: unknown): string {
  if (error instanceof StoreDefect) return error.message;
  if (error instanceof SchemaMigrationRequiredError) return 'the schema is missing: run quillgate migrate';
  const code = error instanceof Error && 'code' in error ? ` (${String(error.code)})` : '';
  return `the store cannot be reached${code}`;
}
