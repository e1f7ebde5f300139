import { readFileSync } from 'node:fs';
import { hostname, userInfo } from 'node:os';
import { join } from 'node:path';
import { type Database, openDatabase } from '../db/database/client.js';
import { type Config, defaultOwner, type Environment, parseConfig } from '../shared/config/config.js';
import { userName } from '../shared/credential-forms.js';
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
  const database = openForCommand(findDatabase(config));
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

/** Who runs the command, for the audit: the account of the operating system, and its machine. */
export const actor = (): string => `${account()}@${hostname()}`;

/** Containers may run under a user id without a name. */
function account(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.()}`;
  }
}

/** Checks the name of a user or of a token's owner by the rule of CHAT_USERNAME. Throws `StartupError`. */
export function checkName(name: string): string {
  if (!userName.safeParse(name).success)
    throw new StartupError('A name has 1 to 128 characters, and no colon or control characters.');
  return name;
}

/** The variables that give this user another secret than the database's; undefined without any, or if unknown. */
export function secretVariablesOf(config: Config, name: string): string | undefined {
  const prefix = (['CHAT', 'ADMIN'] as const).find((one) => nameInEnvironment(one, config) === name);
  return prefix && `${prefix}_USERNAME and ${prefix}_PASSWORD`;
}

/** Default owner of a token and author of a post: the same as for the tokens of the environment. */
export const ownerByDefault = (config: Config): string =>
  nameInEnvironment('CHAT', config) ?? defaultOwner(config);

/**
 * Name of the user whose credentials the API gets from its environment: CHAT_USERNAME or ADMIN_USERNAME, or the one
 * `npm start` made when this is its database. Undefined when neither is known here.
 */
export function nameInEnvironment(prefix: 'CHAT' | 'ADMIN', config: Config): string | undefined {
  const given = config[`${prefix}_USERNAME`];
  if (given !== undefined || config.DATABASE_URL !== undefined) return given;
  const file = join(config.DATA_DIR, `${prefix.toLowerCase()}-credentials`);
  try {
    // `npm start` writes `name:secret` to it.
    return /^([^:]+):/.exec(readFileSync(file, 'utf8'))?.[1];
  } catch {
    // It does not exist, or we may not read it.
    return undefined;
  }
}

/** Reads the names that an option gives. Throws `StartupError`, which begins with the rule, for an unknown one. */
export function readNames<T extends string>(given: string[], known: readonly T[], rule: string): T[] {
  const wanted = new Set<string>(given.map((name) => name.trim()));
  const found = known.filter((name) => wanted.has(name));
  if (found.length < wanted.size) throw new StartupError(`${rule}: ${known.join(', ')}.`);
  return found;
}
