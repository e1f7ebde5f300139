import { Failure } from '../shared/failures.js';
import type { Log } from '../shared/log.js';
import type { Drizzle } from './connection.js';
import { createConnectionPool } from './connection-pool.js';
import { codeOf, isDatabaseTrouble, postgresErrorOf, schemaMissing, troubleOf } from './database-trouble.js';
import { type Listener, type ListenHooks, startListening } from './listener.js';
import { pendingMigrations } from './migrate.js';

export type { Drizzle } from './connection.js';

/** What one check has found; the detail is safe to show. */
export type CheckResult = { status: 'ok' } | { status: 'failing'; detail: string };

/** Whether the database answers, and whether its schema is the one that this version needs. */
export interface DatabaseHealth {
  database: CheckResult;
  migrations: CheckResult;
}

/** The blog's database, seen through time limits: nothing here waits for long. */
export interface Database {
  /**
   * Runs one statement. Waits at most 1.5 s for a free connection, is cut by the server after 2 s, and given up after
   * 3.5 s in all. Throws `Failure('database_unavailable')` for what is the database's trouble and not the query's;
   * other errors are thrown as they are.
   */
  run<T>(query: (db: Drizzle) => PromiseLike<T>): Promise<T>;
  /** Looks at the database on a connection that requests do not use, within 3 s. Never throws. */
  check(): Promise<DatabaseHealth>;
  /** Calls the hooks until the database is closed, on a connection of its own. Never throws; retries for ever. */
  listen(channel: string, hooks: ListenHooks): void;
  /** Ends every connection within about a second, also when the server is silent. */
  close(): Promise<void>;
}

const requestLimits = { waitMs: 1500, answerMs: 3500 };
const checkLimits = { waitMs: 2500, answerMs: 2500 };

/** Opens the database of the URL. Never throws for an unreachable one: `check` tells. */
export function openDatabase({ url, poolSize, log }: { url: string; poolSize: number; log: Log }): Database {
  const requests = createConnectionPool({ url, size: poolSize, ...requestLimits, log });
  const checks = createConnectionPool({ url, size: 1, ...checkLimits, log });
  const listeners: Listener[] = [];
  let checking: Promise<DatabaseHealth> | undefined;

  const look = () =>
    checks
      .run(pendingMigrations)
      .then(healthOf, unreachable)
      .finally(() => {
        checking = undefined;
      });
  return {
    run: async (query) => {
      try {
        return await requests.run(query);
      } catch (error) {
        if (!isDatabaseTrouble(error)) throw error;
        log.warn({ code: codeOf(error) }, 'database unavailable');
        throw new Failure('database_unavailable', { cause: error });
      }
    },
    check: () => {
      // However many ask at once, one look serves them.
      checking ??= look();
      return checking;
    },
    listen: (channel, hooks) => void listeners.push(startListening({ url, channel, hooks, log })),
    close: async () => {
      await Promise.all([requests, checks, ...listeners].map((part) => part.close()));
    },
  };
}

/** Whether a statement failed because another row has its values in the unique constraint or index of this name. */
export function isUniqueViolation(error: unknown, constraint: string): boolean {
  const { code, constraint_name } = postgresErrorOf(error) ?? {};
  return code === uniqueViolation && constraint_name === constraint;
}

/** PostgreSQL's manual, appendix A. */
const uniqueViolation = '23505';

const healthOf = (pending: number): DatabaseHealth => ({
  database: { status: 'ok' },
  migrations: pending === 0 ? { status: 'ok' } : { status: 'failing', detail: schemaMissing },
});

function unreachable(error: unknown): DatabaseHealth {
  const result = { status: 'failing', detail: troubleOf(error) } as const;
  return { database: result, migrations: result };
}
