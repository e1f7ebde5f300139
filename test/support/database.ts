import { type Database, openDatabase } from '../../db/database/client.js';
import { createDatabase, runServer, type Schema, startPostgresServer } from './postgres-server.js';
import { createRecordingLog } from './recording-log.js';

/** A database that only one test file uses. */
export interface TestDatabase {
  url: string;
  /** Stops the server if it is the database's own. */
  stop(): Promise<void>;
}

/** How to create a test's database. */
export interface TestDatabaseOptions {
  /** Its own server, for tests that change roles or settings, stop the server, or inspect all of it. */
  ownServer?: boolean;
}

/** Creates an empty database, by default on the run's server. */
export const startEmptyDatabase = (options: TestDatabaseOptions = {}): Promise<TestDatabase> =>
  start('empty', options);

/** Creates a database with the schema of the blog, by default on the run's server. */
export const startTestDatabase = (options: TestDatabaseOptions = {}): Promise<TestDatabase> =>
  start('blog', options);

async function start(schema: Schema, { ownServer = false }: TestDatabaseOptions): Promise<TestDatabase> {
  const shared = runServer();
  if (shared !== undefined && !ownServer) {
    // Removed with the server: dropping it would take a checkpoint.
    return { url: await createDatabase(shared, schema), stop: async () => undefined };
  }
  const server = await startPostgresServer();
  try {
    return { url: await createDatabase(server.url, schema), stop: server.stop };
  } catch (error) {
    await server.stop();
    throw error;
  }
}

/** Limits that are not reached unless a test is about them. */
export const generousLimits = { waitMs: 120_000, answerMs: 120_000 };

/** Opens a migrated database with generous limits, by default with two connections for requests. */
export async function openTestDatabase({
  poolSize = 2,
  ...options
}: TestDatabaseOptions & { poolSize?: number } = {}): Promise<TestDatabase & { database: Database }> {
  const server = await startTestDatabase(options);
  const database = openDatabase({
    url: server.url,
    poolSize,
    log: createRecordingLog().log,
    ...generousLimits,
  });
  const stop = async () => {
    await database.close();
    await server.stop();
  };
  return { database, url: server.url, stop };
}
