import { fileURLToPath } from 'node:url';
import { sql } from 'drizzle-orm';
import { migrate } from 'drizzle-orm/postgres-js/migrator';
import { type Drizzle, openConnection } from './connection.js';
import { codeOf, undefinedTable } from './database-trouble.js';
import journal from './migrations/meta/_journal.json' with { type: 'json' };

const migrationsFolder = fileURLToPath(new URL('./migrations', import.meta.url));

/** Any number that nobody else takes: whoever migrates holds this lock of the database. */
const migrationLock = 5_142_077_301;

const connectTimeoutMs = 5000;
const closingMs = 1000;

/**
 * Brings the schema up to date. Any number of processes may do so at once; a database that a newer version has
 * migrated stays as it is. Rejects with an error of Drizzle or postgres.js; `troubleOf` says what may be shown of it.
 */
export async function migrateDatabase(url: string): Promise<void> {
  const { db, close } = openConnection({
    url,
    connectTimeoutMs,
    // Limits that are set for the role or the database to suit requests would end a migration half-way.
    session: { application_name: 'quillgate migrate', statement_timeout: '0', lock_timeout: '0' },
  });
  try {
    await db.execute(sql`select pg_advisory_lock(${migrationLock})`);
    // Drizzle begins by creating its own schema, which a role may not be allowed to when nothing else is to be done.
    if ((await pendingMigrations(db)) > 0) await migrate(db, { migrationsFolder });
  } finally {
    await close(closingMs);
  }
}

/** How many migrations of this version the database has not seen; none when a newer version has migrated it. */
export async function pendingMigrations(db: Drizzle): Promise<number> {
  const last = await lastMigration(db);
  return journal.entries.filter(({ when }) => when > last).length;
}

/** When the newest migration that was applied had been written, in milliseconds since 1970; 0 before the first. */
async function lastMigration(db: Drizzle): Promise<number> {
  try {
    const [row] = await db.execute<{ last: string | null }>(
      sql`select max(created_at) as last from drizzle.__drizzle_migrations`,
    );
    return Number(row?.last ?? 0);
  } catch (error) {
    if (codeOf(error) === undefinedTable) return 0;
    throw error;
  }
}
