import { type Database, openDatabase } from '../../db/database/client.js';
import { createDatabase, runServer, type Schema, startPostgresServer } from './postgres-server.js';
import { createRecordingLog } from './recording-log.js';

/** A database that only one test file uses. */
export interface TestDatabase {
  url: string;
  /** Ends its server where that is its own. */
  stop(): Promise<void>;
}

/** How a test's database is made. */
export interface TestDatabaseOptions {
  /** On a server of its own, for tests that change roles or settings, end the server, or look at all of it. */
  ownServer?: boolean;
}

/** Creates an empty database, on the run's server unless told otherwise. */
export const startEmptyDatabase = (options: TestDatabaseOptions = {}): Promise<TestDatabase> =>
  start('empty', options);

/** Creates a database with the schema of the blog, on the run's server unless told otherwise. */
export const startTestDatabase = (options: TestDatabaseOptions = {}): Promise<TestDatabase> =>
  start('blog', options);

async function start(schema: Schema, { ownServer = false }: TestDatabaseOptions): Promise<TestDatabase> {
  const shared = runServer();
  if (shared !== undefined && !ownServer) {
    // It goes with the server: to drop it would take a checkpoint.
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

/** Limits that no test reaches which is about something else. */
export const patientLimits = { waitMs: 20_000, answerMs: 20_000 };

/** Opens a migrated database with patient limits, and with two connections for requests unless told otherwise. */
export async function openTestDatabase({
  poolSize = 2,
  ...options
}: TestDatabaseOptions & { poolSize?: number } = {}): Promise<TestDatabase & { database: Database }> {
  const server = await startTestDatabase(options);
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
