import { Failure } from '../../shared/failures.js';
import type { Log } from '../../shared/runtime/log.js';
import { singleFlight } from '../../shared/runtime/single-flight.js';
import { parsePostgresUrl } from '../../shared/urls/postgres-url.js';
import { createConnectionPool, type Query } from './connection-pool.js';
import { codeOf, errorOf, isDatabaseError, postgresErrorOf, schemaMissing, statementCut } from './errors.js';
import { type Listener, type ListenHooks, startListening } from './listener.js';
import { findSchemaAge, type SchemaAge } from './migrate.js';

export type { Drizzle } from './connection.js';

/** What one check has found; the detail is safe to show. */
export type CheckResult = { status: 'ok'; detail?: string } | { status: 'failing'; detail: string };

/** Whether the database answers, and whether its schema is the one that this version needs. */
export interface DatabaseHealth {
  database: CheckResult;
  migrations: CheckResult;
}

/**
 * What a statement is for:
 * - `request`: to serve one; the usual.
 * - `look-up`: to find by an index what the request goes on with; given up after a second, which leaves it time.
 * - `search`: it may take long and come in any number, so it gets a third of the connections at most.
 * - `upkeep`: to know what the process has to know however many requests there are; on the connection of `check`.
 */
export type Purpose = 'request' | 'look-up' | 'search' | 'upkeep';

/** Runs statements, and waits for none of them for long. */
export interface Statements {
  /**
   * Runs one statement. Waits at most 0.8 s for a free connection, is cut by the server after 2 s, and given up after
   * 2.8 s in all. Throws `Failure('database_unavailable')` for what is the database's trouble and not the query's;
   * other errors are thrown as they are.
   */
  run<T>(query: Query<T>, purpose?: Purpose): Promise<T>;
}

/** The blog's database, seen through time limits. */
export interface Database extends Statements {
  /** For statements that follow one another to serve one request: from now on they have 2.8 s together. */
  together(): Statements;
  /** Looks at the database on a connection that requests do not use, within 3 s. Never throws. */
  check(): Promise<DatabaseHealth>;
  /** Calls the hooks until the database is closed, on a connection of its own. Never throws; retries for ever. */
  listen(channel: string, hooks: ListenHooks): void;
  /** Ends every connection within about a second, also when the server is silent. */
  close(): Promise<void>;
}

// A request is promised an answer within four seconds. It has its credentials looked up first, and then its own turn.
const requestLimits = { waitMs: 800, answerMs: 2800 };
const lookUpMs = 1000;
const checkLimits = { waitMs: 2500, answerMs: 2500 };
/** Anybody may ask for it, as often as they like. */
const checksApartMs = 50;
const lifetimeMs = 30 * 60_000;

interface DatabaseOptions {
  url: string;
  poolSize: number;
  log: Log;
  /** How many milliseconds a statement waits for a free connection, where not as long as those of a request. */
  waitMs?: number;
  /** After how many milliseconds a statement is given up, where not after those of a request. */
  answerMs?: number;
}

/** Opens the database of the URL. Never throws for an unreachable one: `check` tells. Throws `StoreUrlError`. */
export function openDatabase(options: DatabaseOptions): Database {
  const { url, poolSize, log, waitMs = requestLimits.waitMs } = options;
  const { answerMs: maxMs = requestLimits.answerMs } = options;
  const address = parsePostgresUrl(url);
  const requests = createConnectionPool({
    address,
    size: poolSize,
    waitMs,
    answerMs: maxMs,
    lifetimeMs,
    log,
  });
  const checks = createConnectionPool({ address, size: 1, ...checkLimits, lifetimeMs, log });
  const listeners: Listener[] = [];

  const statements = (leftMs: () => number): Statements => ({
    run: async (query, purpose = 'request') => {
      const answerMs = purpose === 'look-up' ? Math.min(lookUpMs, leftMs()) : leftMs();
      try {
        if (purpose === 'upkeep') return await checks.run(query);
        return await requests.run(query, { answerMs, slow: purpose === 'search' });
      } catch (error) {
        if (!isDatabaseError(error)) throw error;
        log.warn({ code: codeOf(error), purpose }, 'database unavailable');
        throw new Failure('database_unavailable', { ...factsOf(error, purpose), cause: error });
      }
    },
  });
  const look = () => checks.run(findSchemaAge).then(healthOf, unreachable);
  return {
    ...statements(() => maxMs),
    together: () => {
      const until = performance.now() + maxMs;
      return statements(() => until - performance.now());
    },
    check: singleFlight(look, { apartMs: checksApartMs }),
    listen: (channel, hooks) => void listeners.push(startListening({ address, channel, hooks, log })),
    close: async () => {
      await Promise.all([requests, checks, ...listeners].map((part) => part.close()));
    },
  };
}

/** A search that fails by itself shall not look like an outage, nor be repeated at once. */
function factsOf(error: unknown, purpose: Purpose): { detail?: string; retryAfterMs?: number } {
  const code = purpose === 'search' ? codeOf(error) : undefined;
  if (code === statementCut)
    return { detail: 'The search took too long: make it narrower.', retryAfterMs: 60_000 };
  if (code === 'NO_FREE_CONNECTION') return { detail: 'Too many searches are running at the moment.' };
  return {};
}

/** Whether a statement failed because another row has its values in the unique constraint or index of this name. */
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
