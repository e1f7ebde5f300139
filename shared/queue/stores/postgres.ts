import {
  assertSchemaCompatibility,
  createPostgresRelayBackend,
  LATEST_SCHEMA_VERSION,
  type PgPool,
  type Queue,
  Relay,
  runMigrations,
  SchemaMigrationRequiredError,
  SchemaVersionMismatchError,
  type Worker,
  withBackend,
} from 'bullmq';
import pg from 'pg';
import { providerIds } from '../../contracts/contract.js';
import type { Log } from '../../runtime/log.js';
import { storeTimeoutMs, withTimeout } from '../../runtime/retry.js';
import { parsePostgresUrl } from '../../urls/postgres-url.js';
import { maximumRateLimitDelay } from '../patches/main-loop.js';
import { recoveringBackends } from '../patches/postgres-backend.js';
import { silenceEvents } from '../patches/postgres-events.js';
import { Misconfiguration, type QueueDepth, type RecordStore, type StoreParts } from '../queue-store.js';
import type { StoreClock } from './clock-skew.js';
import { makeBlobs, openPostgresBlobs } from './postgres-blobs.js';
import { lostRuns, lostRunsOfOldest, nextIds, readJobs, readTimes } from './postgres-jobs.js';
import { makeOutbox, openPostgresOutbox } from './postgres-outbox.js';
import { openPostgresPool } from './postgres-pool.js';

/** Opens the queue's store in PostgreSQL; `migratePostgresStore` creates its schema. */
export function openPostgresStore(url: string, log: Log, clock: StoreClock): StoreParts {
  const session = { search_path: schema };
  const unflushed = { session: { ...session, synchronous_commit: 'off' }, log };
  const listeners = providerIds.length;
  const queuePool = openPostgresPool(url, { max: queueConnections, listeners, ...unflushed });
  const urgentPool = openPostgresPool(url, { max: urgentConnections, listeners: 1, ...unflushed });
  const recordsPool = openPostgresPool(url, { max: recordConnections, session, log });
  const blobPool = openPostgresPool(url, { max: blobConnections, ...unflushed });
  const pools = [queuePool, urgentPool, recordsPool, blobPool];
  const { pool, connection } = queuePool;
  const { connection: urgent } = urgentPool;
  const postgres = withBackend(recoveringBackends(urgent));
  const relaySettings = { connection: urgent, backend: createPostgresRelayBackend };
  return {
    kind: 'postgres',
    records: openRecords(recordsPool.pool),
    blobs: openPostgresBlobs(blobPool.pool, { table: blobTable, concurrency: blobConnections }),
    outbox: openPostgresOutbox(recordsPool.pool, outboxTable),
    findDefect: () => findDefect(urgent, clock),
    createQueue: (name) => new postgres.Queue(name, { connection }) as unknown as Queue,
    createWorker: (name, processor, options) => {
      const notRemoved = (err: Error) => log.debug({ err }, 'postgres connection');
      pool.query(removeFutureCheck, [name]).catch(notRemoved);
      const settings = { ...options, connection, runRetryDelay, maximumRateLimitDelay };
      return new postgres.Worker(name, processor, settings) as unknown as Worker;
    },
    createRelay: (options) => new Relay({ ...options, ...relaySettings }) as unknown as Relay,
    createPubSub: () => undefined,
    readJobs: (queue, jobIds) => withTimeout(storeTimeoutMs, readJobs(pool, { schema, queue, jobIds })),
    readTimes: (queue, jobIds) => withTimeout(storeTimeoutMs, readTimes(pool, { schema, queue, jobIds })),
    nextIds: (queue, limit) => withTimeout(storeTimeoutMs, nextIds(pool, { schema, queue, limit })),
    lostRuns: (queue, jobIds) => withTimeout(storeTimeoutMs, lostRuns(pool, { schema, queue, jobIds })),
    lostRunsOfOldest: (queue, asked) =>
      withTimeout(storeTimeoutMs, lostRunsOfOldest(pool, { schema, queue, ...asked })),
    measure: ({ name }) => measure(pool, name),
    wake: async ({ name }) => void (await pool.query(`select pg_notify('bullmq_jobs', $1)`, [name])),
    // `silenceEvents` leaves none to forget.
    forgetEvents: async () => undefined,
    close: async () => void (await Promise.all(pools.map((each) => each.close()))),
  };
}

/**
 * For queues. A NOTIFY locks the whole database from before its commit until after it, and each add, completion and
 * message has one: with a flush to the disk in between they would run one after the other, at the pace of the disk. So
 * PostgreSQL may forget the last moments before a crash of its own here, as Redis may with `appendfsync everysec`.
 */
const queueConnections = 12;
/** For what must not wait behind jobs: messages, renewals of locks, and checks of the store. One of them listens. */
const urgentConnections = 4;
/** For records and the outbox, which are flushed: they outlive a crash. */
const recordConnections = 4;
/** For chunks of images and long texts, which nothing else should wait behind. */
const blobConnections = 2;

/** Brings BullMQ's schema and our own tables up to date; may run concurrently. Throws `Misconfiguration`. */
export async function migratePostgresStore(url: string): Promise<void> {
  const client = new pg.Client({ ...parsePostgresUrl(url), connectionTimeoutMillis: 5000 });
  await client.connect();
  try {
    await runMigrations(client, schema);
    await client.query(makeTables);
    await client.query(silenceEvents(schema, table));
  } catch (error) {
    throw error instanceof SchemaVersionMismatchError ? new Misconfiguration(tooNew) : error;
  } finally {
    await client.end();
  }
}

const schema = 'bullmq';
const table = `${schema}.quillgate_records`;
const blobTable = `${schema}.quillgate_images`;
const outboxTable = `${schema}.quillgate_outbox`;
/** In milliseconds; shorter than with Redis, because no command waits for a connection to come back. */
const runRetryDelay = 200;

/** One query text is one transaction. "If not exists" alone fails when two run it at once: hence the lock. */
const makeTables = `
  select pg_advisory_xact_lock(hashtext('${table}'));
  create table if not exists ${table} (key text primary key, value text not null, ends_at timestamptz not null);
  create index if not exists quillgate_records_ends_at on ${table} (ends_at);
  ${makeBlobs(blobTable)};
  ${makeOutbox(outboxTable)}`;

const missing = 'the schema is missing or older than this release: run quillgate migrate';
/** BullMQ's schema names the oldest major version of BullMQ that may work with it. */
const tooNew = 'the schema is of a newer release that this one cannot work with: upgrade this program';

async function findDefect(connection: PgPool, clock: StoreClock): Promise<string | undefined> {
  try {
    const found = await assertSchemaCompatibility(connection, schema);
    if (found < LATEST_SCHEMA_VERSION) return missing;
    let isMissing = false;
    const defect = await clock.sync(async () => {
      const { rows } = await connection.query(readStoreState);
      isMissing = Boolean(rows[0]?.missing);
      return Number(rows[0]?.now);
    });
    return isMissing ? missing : defect;
  } catch (error) {
    if (error instanceof SchemaMigrationRequiredError) return missing;
    if (error instanceof SchemaVersionMismatchError) return tooNew;
    throw error;
  }
}

const serverMs = `(extract(epoch from clock_timestamp()) * 1000)::bigint`;
const ourTables = [table, blobTable, outboxTable].map((name) => `to_regclass('${name}')`).join();
const readStoreState = `select num_nulls(${ourTables}) > 0 as missing, ${serverMs} as now`;

/** A worker with a fast clock may have stored a future time, and stalled jobs would not be checked before it. */
const removeFutureCheck = `
  delete from ${schema}.meta where queue = $1 and field = 'stalled-check' and value::bigint > ${serverMs}`;

async function measure(pool: pg.Pool, queue: string): Promise<QueueDepth> {
  const { rows } = await pool.query<QueueDepth>(countJobs, [queue]);
  const { waiting = 0, active = 0, oldestAddedAt } = rows[0] ?? {};
  return { waiting, active, oldestAddedAt: oldestAddedAt ?? undefined };
}

/** Two subqueries, because each state has its own index: finished jobs are not read. `pg` gives a bigint as a text. */
const countJobs = `
  select * from
  (select count(*)::float8 as waiting, min(added_at_ms)::float8 as "oldestAddedAt"
    from ${schema}.job where queue = $1 and state = 'waiting') as queued,
  (select count(*)::float8 as active from ${schema}.job where queue = $1 and state = 'active') as taken`;

const maxRemovedAtOnce = 1000;

/** An expired record counts as absent, removed or not. Only the server's clock is used. */
function openRecords(pool: pg.Pool): RecordStore {
  const query = (text: string, values: unknown[]) =>
    withTimeout(storeTimeoutMs, pool.query<{ key: string; value: string }>(text, values));
  const changed = async (text: string, values: unknown[]) => (await query(text, values)).rowCount === 1;
  return {
    read: async (key) => (await query(readRecord, [key])).rows[0]?.value,
    readAll: async (keys) => {
      if (keys.length === 0) return [];
      const { rows } = await query(readRecords, [keys]);
      const values = new Map(rows.map(({ key, value }) => [key, value]));
      return keys.map((key) => values.get(key));
    },
    create: (key, { value, ttlMs }) => changed(createRecord, [key, value, ttlMs ?? null]),
    replace: (key, { expected, value, ttlMs }) =>
      changed(replaceRecord, [key, value, ttlMs ?? null, expected]),
    removeEnded: async () => {
      let removed: number | null;
      do removed = (await query(removeEndedRecords, [maxRemovedAtOnce])).rowCount;
      while (removed === maxRemovedAtOnce);
    },
  };
}

const end = `coalesce(clock_timestamp() + $3::float8 * interval '1 millisecond', 'infinity')`;
const readRecord = `select value from ${table} where key = $1 and ends_at > clock_timestamp()`;
const readRecords = `select key, value from ${table} where key = any($1) and ends_at > clock_timestamp()`;
const createRecord = `
  insert into ${table} as there (key, value, ends_at) values ($1, $2, ${end})
  on conflict (key) do update set value = excluded.value, ends_at = excluded.ends_at
  where there.ends_at <= clock_timestamp()`;
const replaceRecord = `
  update ${table} set value = $2, ends_at = ${end}
  where key = $1 and value = $4 and ends_at > clock_timestamp()`;
/** In batches, so that none takes long; rows that another process is removing are skipped. */
const removeEndedRecords = `
  delete from ${table} where key in
  (select key from ${table} where ends_at <= now() order by ends_at limit $1 for update skip locked)`;
