import { Failure } from '../../shared/failures.js';
import type { Log } from '../../shared/runtime/log.js';
import { singleFlight } from '../../shared/runtime/single-flight.js';
import { type PostgresAddress, parsePostgresUrl } from '../../shared/urls/postgres-url.js';
import { ConnectionPool, type Query } from './connection-pool.js';
import { codeOf, errorOf, isDatabaseError, postgresErrorOf, queryCanceled, schemaMissing } from './errors.js';
import { type Listener, type ListenHooks, startListening } from './listener.js';
import { findSchemaAge, type SchemaAge } from './migrate.js';

export type { Drizzle } from './connection.js';

/** The result of one check; the detail is safe to show. */
export type CheckResult = { status: 'ok'; detail?: string } | { status: 'failing'; detail: string };

/** Whether the database answers, and whether its schema is the one this release needs. */
export interface DatabaseHealth {
  database: CheckResult;
  migrations: CheckResult;
}

/**
 * What a statement is for:
 * - `request`: to serve a request; the default.
 * - `auth`: to check the credentials of a request; given up after a second, so that time is left for the request itself.
 * - `feed`: to find the versions of a feed's posts before their contents; given up after a second, too.
 * - `search`: may take long and come in large numbers, so it gets a third of the connections at most.
 * - `background`: for what the process must know however many requests there are; uses the connection of `check`.
 */
export type Purpose = 'request' | 'auth' | 'feed' | 'search' | 'background';

/** Runs statements within time limits. */
export interface Statements {
  /**
   * Runs one statement. Waits at most 0.8 s for a free connection, is cancelled by the server after 2 s, and given up after
   * 2.8 s in all. Throws `Failure('database_unavailable')` for an error of the database rather than the statement; other
   * errors are thrown as they are.
   */
  run<T>(query: Query<T>, purpose?: Purpose): Promise<T>;
}

/** The blog's database. */
export interface Database extends Statements {
  /** For the statements that serve one request in turn: together they get 2.8 s from now on. */
  withSharedDeadline(): Statements;
  /** Checks the database on a connection that requests do not use, within 3 s. Never throws. */
  check(): Promise<DatabaseHealth>;
  /** Calls the hooks until the database is closed, on a connection of its own. Never throws; reconnects without end. */
  listen(channel: string, hooks: ListenHooks): void;
  /** Ends every connection within about a second, even when the server is silent. */
  close(): Promise<void>;
}

// A request is answered within four seconds: its credentials are checked first, then it is served.
const requestLimits = { waitMs: 800, answerMs: 2800 };
const firstStepMs = 1000;
const firstSteps: ReadonlySet<Purpose> = new Set(['auth', 'feed']);
const checkLimits = { waitMs: 2500, answerMs: 2500 };
/** Anybody may ask for a check, as often as they like. */
const checksApartMs = 50;
const lifetimeMs = 30 * 60_000;

interface DatabaseOptions {
  url: string;
  poolSize: number;
  log: Log;
  /** How many milliseconds a statement waits for a free connection; by default as for requests. */
  waitMs?: number;
  /** After how many milliseconds a statement is given up; by default as for requests. */
  answerMs?: number;
}

/** Opens the database of the URL. Does not throw when it is unreachable, which `check` reports. Throws `StoreUrlError`. */
export const openDatabase = (options: DatabaseOptions): Database => new PostgresDatabase(options);

class PostgresDatabase implements Database {
  readonly #address: PostgresAddress;
  readonly #log: Log;
  readonly #answerMs: number;
  readonly #requests: ConnectionPool;
  readonly #checks: ConnectionPool;
  readonly #listeners: Listener[] = [];
  readonly check: () => Promise<DatabaseHealth>;

  constructor({ url, poolSize, log, ...limits }: DatabaseOptions) {
    const { waitMs, answerMs } = { ...requestLimits, ...limits };
    const address = parsePostgresUrl(url);
    this.#address = address;
    this.#log = log;
    this.#answerMs = answerMs;
    this.#requests = new ConnectionPool({ address, size: poolSize, waitMs, answerMs, lifetimeMs, log });
    this.#checks = new ConnectionPool({ address, size: 1, ...checkLimits, lifetimeMs, log });
    const checkNow = () => this.#checks.run(findSchemaAge).then(healthOf, unreachable);
    this.check = singleFlight(checkNow, { apartMs: checksApartMs });
  }

  run<T>(query: Query<T>, purpose?: Purpose): Promise<T> {
    return this.#run(query, { leftMs: this.#answerMs, purpose });
  }

  withSharedDeadline(): Statements {
    const until = performance.now() + this.#answerMs;
    return { run: (query, purpose) => this.#run(query, { leftMs: until - performance.now(), purpose }) };
  }

  listen(channel: string, hooks: ListenHooks): void {
    const options = { address: this.#address, channel, hooks, log: this.#log };
    this.#listeners.push(startListening(options));
  }

  async close(): Promise<void> {
    await Promise.all([this.#requests, this.#checks, ...this.#listeners].map((part) => part.close()));
  }

  async #run<T>(
    query: Query<T>,
    { leftMs, purpose = 'request' }: { leftMs: number; purpose: Purpose | undefined },
  ): Promise<T> {
    const answerMs = firstSteps.has(purpose) ? Math.min(firstStepMs, leftMs) : leftMs;
    try {
      if (purpose === 'background') return await this.#checks.run(query);
      return await this.#requests.run(query, { answerMs, slow: purpose === 'search' });
    } catch (error) {
      if (!isDatabaseError(error)) throw error;
      this.#log.warn({ code: codeOf(error), purpose }, 'database unavailable');
      throw new Failure('database_unavailable', { ...factsOf(error, purpose), cause: error });
    }
  }
}

/** A failed search must not look like an outage, nor be repeated at once. */
function factsOf(error: unknown, purpose: Purpose): { detail?: string; retryAfterMs?: number } {
  const code = purpose === 'search' ? codeOf(error) : undefined;
  if (code === queryCanceled)
    return { detail: 'The search took too long: make it narrower.', retryAfterMs: 60_000 };
  if (code === 'NO_FREE_CONNECTION') return { detail: 'Too many searches are running at the moment.' };
  return {};
}

/** Whether a statement failed because another row has the same values in the unique constraint or index of this name. */
export function isUniqueViolation(error: unknown, constraint: string): boolean {
  const { code, constraint_name } = postgresErrorOf(error) ?? {};
  return code === uniqueViolation && constraint_name === constraint;
}

/** PostgreSQL's manual, appendix A. */
const uniqueViolation = '23505';

const healthOf = (age: SchemaAge): DatabaseHealth => ({
  database: { status: 'ok' },
  migrations: migrationsByAge[age],
});

const migrationsByAge: Record<SchemaAge, CheckResult> = {
  older: { status: 'failing', detail: schemaMissing },
  current: { status: 'ok' },
  newer: { status: 'ok', detail: 'a newer release has migrated this database' },
};

function unreachable(error: unknown): DatabaseHealth {
  const result = { status: 'failing', detail: errorOf(error) } as const;
  return { database: result, migrations: result };
}
