import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Database, openDatabase } from '../db/database/client.js';
import { type Config, type Environment, parseConfig } from '../shared/config/config.js';
import { Failure } from '../shared/failures.js';
import { createLog, type Log } from '../shared/runtime/log.js';
import { StartupError } from '../shared/runtime/program.js';
import { parsePostgresUrl } from '../shared/urls/postgres-url.js';
import { StoreUrlError } from '../shared/urls/store-url-parts.js';

/** Maximum statements, and so connections, that a command uses at once. */
const statementsAtOnce = 8;
/** How long a command waits before it says that a store is away, in milliseconds: on a busy machine one may be slow. */
export const patienceMs = 10_000;
/** A command can wait, and the connection to a remote database can be slow. */
const limits = { answerMs: 30_000, checkMs: patienceMs, connectTimeoutMs: patienceMs };

/** Opens the database of the URL with the limits of a command; the caller closes it. */
export const openForCommand = (url: string): Database =>
  openDatabase({ url, poolSize: statementsAtOnce, log: silentLog(), ...limits });

/**
 * Opens the database for one command and closes it afterwards. Throws `ConfigError`, and `StartupError` when the
 * database cannot be found, reached or used as it is.
 */
export async function withDatabase<T>(
  environment: Environment,
  command: (database: Database, config: Config) => Promise<T>,
): Promise<T> {
  const config = parseConfig(environment, 'command');
  const url = findDatabase(config);
  const database = openForCommand(url);
  try {
    await assertUsable(database);
    return await command(database, config);
  } catch (error) {
    if (!isUnavailable(error)) throw error;
    throw new StartupError('The database stopped answering; the command may or may not have taken effect.');
  } finally {
    await database.close();
  }
}

/** The log of a command: standard output belongs to what it prints. */
export const silentLog = (): Log => createLog({ program: 'quillgate', level: 'silent' });

/** Whether the error says that the database cannot be reached. */
export const isUnavailable = (error: unknown): boolean =>
  error instanceof Failure && error.code === 'database_unavailable';

/** Works on all items, as many at once as there are connections. Rejects when one of them does. */
export async function doSeveral<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const waiting = items.values();
  const workOn = async () => {
    for (const item of waiting) await work(item);
  };
  await Promise.all(Array.from({ length: statementsAtOnce }, workOn));
}

async function assertUsable(database: Database): Promise<void> {
  const { database: reached, migrations } = await database.check();
  for (const result of [reached, migrations])
    if (result.status === 'failing') throw new StartupError(`The database cannot be used: ${result.detail}.`);
}

/** The database's address: DATABASE_URL, or that of the running `npm start`. Throws `StartupError` without one. */
export function findDatabase({ DATABASE_URL, DATA_DIR }: Config): string {
  if (DATABASE_URL !== undefined) return DATABASE_URL;
  const path = databaseFile(DATA_DIR);
  try {
    const url = readFileSync(path, 'utf8').trim();
    parsePostgresUrl(url);
    return url;
  } catch (error) {
    if (error instanceof StoreUrlError)
      throw new StartupError(`${path} does not hold a postgres:// URL; npm start rewrites it.`);
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') throw new StartupError(nothingRuns({ DATA_DIR }));
    throw new StartupError(`${path} cannot be read (${(error as NodeJS.ErrnoException).code}).`);
  }
}

/** `npm start` writes the address of its own database to this file. */
const databaseFile = (dataDir: string): string => join(dataDir, 'database-url');

/** The message when no database is configured and `npm start` does not run. */
export const nothingRuns = ({ DATA_DIR }: Pick<Config, 'DATA_DIR'>): string =>
  `Nothing runs here: run npm start, which writes the address of its database to ${databaseFile(DATA_DIR)}, or set DATABASE_URL.`;
