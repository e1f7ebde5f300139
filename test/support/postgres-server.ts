import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { migrateDatabase } from '../../db/database/migrate.js';
import { startEmbeddedPostgres } from '../../dev/postgres/embedded-postgres.js';
import { parseConfig } from '../../shared/config/config.js';
import { migrateQueueStore } from '../../shared/queue/stores/open.js';

/** The initial content of a database: nothing, the blog's tables, or those and the queue's. */
export type Schema = 'empty' | 'blog' | 'queue';

/** Set by `start-postgres.ts` for the test files: the URL of the run's PostgreSQL server. */
export const runServerVariable = 'TEST_POSTGRES_URL';

/** The server that all test files of a run share; undefined outside a run. */
export const runServer = (): string | undefined => process.env[runServerVariable];

/** Template databases, which are copied instead of being migrated. */
const templates = { blog: 'template_blog', queue: 'template_queue' } as const;

/** Starts an embedded PostgreSQL in a temporary folder. `stop` removes its data. */
export async function startPostgresServer(): Promise<{ url: string; stop(): Promise<void> }> {
  const dataDir = mkdtempSync(join(tmpdir(), 'quillgate-test-'));
  const remove = () => rmSync(dataDir, { recursive: true, force: true });
  try {
    const { url, stop } = await startEmbeddedPostgres({ dataDir });
    const end = async () => {
      endAtOnce(dataDir);
      await stop();
    };
    return { url, stop: () => end().finally(remove) };
  } catch (error) {
    remove();
    throw error;
  }
}

/** Without the checkpoint of an orderly end: the data is not read again. */
function endAtOnce(dataDir: string): void {
  const [pid] = readFileSync(join(dataDir, 'postgres', 'postmaster.pid'), 'utf8').split('\n');
  process.kill(Number(pid), 'SIGQUIT');
}

/** Creates the templates that `createDatabase` copies. */
export async function createTemplates(server: string): Promise<void> {
  await command(server, `create database ${templates.blog}`);
  await migrateDatabase(at(server, templates.blog));
  await command(server, `create database ${templates.queue} template ${templates.blog}`);
  await migrateQueue(at(server, templates.queue));
}

/** Creates a database with a new name and returns its URL. Without templates on the server it is migrated here. */
export async function createDatabase(server: string, schema: Schema = 'empty'): Promise<string> {
  const name = `test_${randomUUID().replaceAll('-', '')}`;
  const url = at(server, name);
  if (schema === 'empty') {
    await command(server, `create database ${name}`);
    return url;
  }
  const copied = await command(server, `create database ${name} template ${templates[schema]}`).catch(
    isMissing,
  );
  if (copied !== undefined) return url;
  await command(server, `create database ${name}`);
  await migrateDatabase(url);
  if (schema === 'queue') await migrateQueue(url);
  return url;
}

/**
 * Selects the locks that are waited for in this database. One on a transaction names no database: a session that waits
 * holds others that do.
 */
export const waitingLocks = `select from pg_locks waiting where not granted and pid in
  (select pid from pg_locks where database = (select oid from pg_database where datname = current_database()))`;

const migrateQueue = (url: string) => migrateQueueStore(parseConfig({ DATABASE_URL: url }, 'migrate'));

async function command(server: string, statement: string): Promise<pg.QueryResult> {
  const client = new pg.Client({ connectionString: server });
  await client.connect();
  try {
    return await client.query(statement);
  } finally {
    await client.end();
  }
}

/** PostgreSQL's code for a database that does not exist. */
const invalidCatalogName = '3D000';

function isMissing(error: { code?: string }): undefined {
  if (error.code !== invalidCatalogName) throw error;
}

function at(server: string, database: string): string {
  const url = new URL(server);
  url.pathname = `/${database}`;
  return url.href;
}
