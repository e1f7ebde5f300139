import { fileURLToPath } from 'node:url';
import { parsePostgresUrl } from '../../shared/urls/postgres-url.js';
import journal from '../migrations/meta/_journal.json' with { type: 'json' };
import { type Drizzle, openSession } from './connections.js';
import { readMigrationFiles, sql } from './drizzle.js';
import { codeOf, undefinedTable } from './errors.js';

const migrationsFolder = fileURLToPath(new URL('../migrations', import.meta.url));

/** The table of the applied migrations; like all our tables in the schema that search_path names. */
const appliedMigrations = sql.identifier('quillgate_migrations');

/** The advisory lock that a migration holds: an arbitrary number, unused elsewhere. */
const migrationLock = 5_142_077_301;

const defaultConnectTimeoutMs = 5000;
const closingMs = 1000;
const defaultNoticeAfterMs = 2000;

interface MigrateOptions {
  onWait?: () => void;
  /** How long another migration is waited for before `onWait` is called, in milliseconds. */
  noticeAfterMs?: number;
  /** How long it may take to connect, in milliseconds. */
  connectTimeoutMs?: number;
}

/**
 * Brings the schema up to date. Any number of processes may do so at once; `onWait` is called in one that has waited 2
 * s for another. Returns the age of the schema afterwards: a database that a newer release has migrated stays as it is.
 * Changes nothing when it rejects, with an error of Drizzle or postgres.js; `errorOf` says what may be shown of it.
 */
export async function migrateDatabase(url: string, options: MigrateOptions = {}): Promise<SchemaAge> {
  const { onWait = () => undefined, noticeAfterMs = defaultNoticeAfterMs } = options;
  const { connectTimeoutMs = defaultConnectTimeoutMs } = options;
  const { db, close } = openSession({
    address: parsePostgresUrl(url),
    connectTimeoutMs,
    // Limits that suit requests, set for the role or the database, would interrupt a migration.
    session: { application_name: 'quillgate migrate', statement_timeout: '0', lock_timeout: '0' },
  });
  try {
    await takeLock(db, { onWait, noticeAfterMs });
    await applyPending(db);
    return await findSchemaAge(db);
  } finally {
    await close(closingMs);
  }
}

/** Whether the schema lacks migrations of this release, has them all, or has an unknown one besides. */
export type SchemaAge = 'older' | 'current' | 'newer';

/** Looks at which migrations the database has seen. A newer one is good for this release too: decision 12. */
export async function findSchemaAge(db: Drizzle): Promise<SchemaAge> {
  const last = await lastMigration(db);
  const newest = Math.max(...journal.entries.map(({ when }) => when));
  if (last === newest) return 'current';
  return last < newest ? 'older' : 'newer';
}

async function takeLock(
  db: Drizzle,
  { onWait, noticeAfterMs }: Required<Pick<MigrateOptions, 'onWait' | 'noticeAfterMs'>>,
): Promise<void> {
  const attempt = sql`select pg_try_advisory_lock(${migrationLock}) as taken`;
  const [row] = await db.execute<{ taken: boolean }>(attempt);
  if (row?.taken) return;
  const waiting = setTimeout(onWait, noticeAfterMs);
  try {
    await db.execute(sql`select pg_advisory_lock(${migrationLock})`);
  } finally {
    clearTimeout(waiting);
  }
}

/** Not Drizzle's own `migrate`: that creates a schema for its table, which takes a right on the whole database. */
async function applyPending(db: Drizzle): Promise<void> {
  const last = await lastMigration(db);
  const pending = readMigrationFiles({ migrationsFolder }).filter(({ folderMillis }) => folderMillis > last);
  if (pending.length === 0) return;
  await db.transaction(async (transaction) => {
    await transaction.execute(
      sql`create table if not exists ${appliedMigrations} (created_at bigint primary key, hash text not null)`,
    );
    for (const { sql: statements, folderMillis, hash } of pending) {
      for (const statement of statements) await transaction.execute(sql.raw(statement));
      await transaction.execute(
        sql`insert into ${appliedMigrations} (created_at, hash) values (${folderMillis}, ${hash})`,
      );
    }
  });
}

/** When the newest applied migration was written, in milliseconds since 1970; 0 before the first. */
async function lastMigration(db: Drizzle): Promise<number> {
  try {
    const [row] = await db.execute<{ last: string | null }>(
      sql`select max(created_at) as last from ${appliedMigrations}`,
    );
    return Number(row?.last ?? 0);
  } catch (error) {
    if (codeOf(error) === undefinedTable) return 0;
    throw error;
  }
}
