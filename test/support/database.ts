import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Database, openDatabase } from '../../db/database/client.js';
import { migrateDatabase } from '../../db/database/migrate.js';
import { startEmbeddedPostgres } from '../../dev/postgres/embedded-postgres.js';
import { createRecordingLog } from './recording-log.js';

/** A database that only one test file uses. */
export interface TestDatabase {
  url: string;
  /** Ends the server and removes its data. */
  stop(): Promise<void>;
}

/** Starts an embedded PostgreSQL in a temporary folder; its database is empty. */
export async function startEmptyDatabase(): Promise<TestDatabase> {
  const dataDir = mkdtempSync(join(tmpdir(), 'quillgate-test-'));
  const remove = () => rmSync(dataDir, { recursive: true, force: true });
  try {
    const server = await startEmbeddedPostgres({ dataDir });
    return { url: server.url, stop: () => server.stop().finally(remove) };
  } catch (error) {
    remove();
    throw error;
  }
}

/** Starts an embedded PostgreSQL in a temporary folder and migrates its database. */
export async function startTestDatabase(): Promise<TestDatabase> {
  const database = await startEmptyDatabase();
  try {
    await migrateDatabase(database.url);
    return database;
  } catch (error) {
    await database.stop();
    throw error;
  }
}

/** Limits that no test reaches which is about something else. */
export const patientLimits = { waitMs: 20_000, answerMs: 20_000 };

/** Starts a migrated database and opens it with patient limits, and with two connections for requests unless told otherwise. */
export async function openTestDatabase({
  poolSize = 2,
} = {}): Promise<TestDatabase & { database: Database }> {
  const server = await startTestDatabase();
  const database = openDatabase({
    url: server.url,
    poolSize,
    log: createRecordingLog().log,
    ...patientLimits,
  });
  const stop = async () => {
    await database.close();
    await server.stop();
  };
  return { database, url: server.url, stop };
}
