import { Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { PgPool } from 'bullmq';
import pg from 'pg';
import type { Log } from '../../runtime/log.js';
import { closedInTime, withTimeout } from '../../runtime/retry.js';
import { parsePostgresUrl } from '../../urls/postgres-url.js';
import { withConnectionErrorsNamed } from '../patches/postgres-pool.js';
import { QueryQueue } from './postgres-jobs.js';

/** The options that differ between pools. */
interface PoolOptions {
  /** Maximum number of connections. */
  max: number;
  /** How many of them only listen for notifications. */
  listeners?: number;
  /** Settings of each session, by their names in PostgreSQL. */
  session: Record<string, string>;
  log: Log;
  /** Period of the heartbeat of a connection in use, in milliseconds. */
  heartbeatMs?: number;
  /** A connection that receives nothing for so long after a heartbeat is dead, in milliseconds. */
  answerMs?: number;
}

/** A pool of `pg`, and the same pool as BullMQ expects it. */
export interface PostgresPool {
  readonly pool: pg.Pool;
  readonly connection: PgPool;
  close(): Promise<void>;
}

const connectTimeoutMs = 2000;

/** Opens a pool that replaces dead connections, also silent ones. It connects on first use. */
export function openPostgresPool(
  url: string,
  { max, listeners = 0, session, log, ...times }: PoolOptions,
): PostgresPool {
  const pool = new pg.Pool({
    ...parsePostgresUrl(url),
    options: Object.entries(session)
      .map(([name, value]) => `-c ${name}=${value}`)
      .join(' '),
    max,
    connectionTimeoutMillis: connectTimeoutMs,
    keepAlive: true,
    // About half an hour: a new connection may lead to the server that has taken over.
    maxLifetimeSeconds: 1700 + Math.round(200 * Math.random()),
    application_name: 'quillgate',
  });
  const logError = (error: Error) => log.debug({ err: error }, 'postgres connection');
  pool.on('error', logError);
  // BullMQ takes clients out of the pool without listening for errors, which would end the process.
  pool.on('connect', (client) => client.on('error', logError));
  // Every queue, worker and relay of a process listens to it: more than Node's default limit.
  pool.setMaxListeners(0);
  endSilentConnections(pool, { heartbeatMs: inUseHeartbeatMs, answerMs: heartbeatAnswerMs, ...times });
  return {
    pool,
    connection: withConnectionErrorsNamed(
      pool,
      new QueryQueue({ concurrency: max - listeners, silentMs: connectTimeoutMs }),
    ),
    // `end` waits for every query, and a silent server answers none.
    close: () => closedInTime(pool.end()),
  };
}

/** Some connections listen for ever. */
const inUseHeartbeatMs = 2000;
/** This bounds every query: ours take less than six seconds. */
const heartbeatAnswerMs = 4000;

/**
 * Ends connections that receive nothing, as when a firewall has forgotten them: TCP itself gives up after a quarter of
 * an hour, and a connection that only listens sends nothing that could go unanswered. Their queries fail.
 */
function endSilentConnections(
  pool: pg.Pool,
  { heartbeatMs, answerMs }: { heartbeatMs: number; answerMs: number },
): void {
  const idle = new Set<pg.PoolClient>();
  const heartbeats = new Map<pg.PoolClient, NodeJS.Timeout>();
  const forget = (client: pg.PoolClient) => {
    clearTimeout(heartbeats.get(client));
    heartbeats.delete(client);
    idle.delete(client);
  };
  const watch = (client: pg.PoolClient) => {
    heartbeats.set(client, setTimeout(() => void heartbeat(client), heartbeatMs).unref());
  };
  const heartbeat = async (client: pg.PoolClient) => {
    const heartbeat = heartbeats.get(client);
    const answers = await isAnswering(client, answerMs);
    // It may have been released meanwhile and be in use again.
    if (heartbeats.get(client) !== heartbeat) return;
    if (answers) return watch(client);
    // The idle connections lead to the same server.
    for (const silent of [client, ...idle]) socketOf(silent)?.destroy(new Error('the connection is silent'));
  };
  pool.on('acquire', (client) => {
    forget(client);
    watch(client);
  });
  pool.on('release', (error, client) => {
    forget(client);
    if (!error) idle.add(client);
  });
  pool.on('remove', forget);
}

/** Whether the server sends anything: an answer to our query, even an error, or to the one under way. */
async function isAnswering(client: pg.PoolClient, answerMs: number): Promise<boolean> {
  const before = socketOf(client)?.bytesRead;
  const isReady = 'readyForQuery' in client && client.readyForQuery === true;
  const asked = isReady ? client.query('select 1').catch(() => undefined) : new Promise(() => undefined);
  await withTimeout(answerMs, asked).catch(() => undefined);
  // When this process itself was too busy, the answer may have arrived without having been handled.
  await nextTurn();
  return socketOf(client)?.bytesRead !== before;
}

const socketOf = (client: pg.PoolClient): Socket | undefined =>
  client instanceof pg.Client && client.connection.stream instanceof Socket
    ? client.connection.stream
    : undefined;
