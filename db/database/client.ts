import { setImmediate as nextTurn } from 'node:timers/promises';
import { Failure } from '../../shared/failures.js';
import type { Log } from '../../shared/runtime/log.js';
import { storeTimeoutMs } from '../../shared/runtime/retry.js';
import { Semaphore } from '../../shared/runtime/semaphore.js';
import { type PostgresAddress, parsePostgresUrl } from '../../shared/urls/postgres-url.js';
import { Connections, type Query } from './connections.js';
import {
  answerWithin,
  codeOf,
  DatabaseTimeout,
  isDatabaseError,
  keepsConnections,
  queryCanceled,
} from './errors.js';
import { createHealthCheck, type DatabaseHealth } from './health.js';
import { type Listener, type ListenHooks, startListening } from './listener.js';

/**
 * The purpose of a statement:
 * - `request`: to serve a request; the default.
 * - `auth`: to check the credentials of a request; given up after a second, which leaves time for the request itself.
 * - `feed`: to find the versions of a feed's posts before their contents; given up after a second, too.
 * - `search`: may take long and come in large numbers, so it gets a third of the connections at most.
 * - `background`: for what the process itself needs, however many requests there are; uses the connection of `check`.
 */
export type Purpose = 'request' | 'auth' | 'feed' | 'search' | 'background';

/** Runs statements within time limits. */
export interface Statements {
  /**
   * Runs one statement. Waits 0.8 s for a connection, 2 s for the server, and 2.8 s in all. Throws
   * `Failure('database_unavailable')` for an error of the database, and one of the statement as it is.
   */
  run<T>(query: Query<T>, purpose?: Purpose): Promise<T>;
}

/** The blog's database. */
export interface Database extends Statements {
  /** For several statements that serve one request: together they get 2.8 s from now on. */
  withSharedDeadline(): Statements;
  /** Checks the database on a connection that requests do not use, within 3 s. Never throws. */
  check(): Promise<DatabaseHealth>;
  /** Calls the hooks until the database is closed, on a connection of its own. Never throws; reconnects without end. */
  listen(channel: string, hooks: ListenHooks): void;
  /** Ends every connection within about a second, even when the server is silent. */
  close(): Promise<void>;
}

// A request is answered within four seconds: its credentials are checked first, then it is served.
const requestLimits = {
  connectTimeoutMs: 2000,
  waitMs: 800,
  answerMs: 2800,
  firstStepMs: 1000,
  checkMs: storeTimeoutMs,
};
const firstSteps: ReadonlySet<Purpose> = new Set(['auth', 'feed']);

interface DatabaseOptions {
  url: string;
  poolSize: number;
  log: Log;
  /** How many milliseconds a statement waits for a free connection; by default as for requests. */
  waitMs?: number;
  /** After how many milliseconds a statement is given up; by default as for requests. */
  answerMs?: number;
  /** The same for `auth` and `feed`. */
  firstStepMs?: number;
  /** The same for `check` and `background`. */
  checkMs?: number;
  /** How long a connection may take to open, in milliseconds. */
  connectTimeoutMs?: number;
  /** After how many milliseconds the server ends a statement; by default a little before it is given up. */
  statementMs?: number;
  /** The clock of `withSharedDeadline`, which never jumps, in milliseconds. */
  now?: () => number;
}

/** Opens the database of the URL, reachable or not; `check` reports an outage. Throws `StoreUrlError`. */
export const openDatabase = (options: DatabaseOptions): Database => new PostgresDatabase(options);

class PostgresDatabase implements Database {
  readonly #address: PostgresAddress;
  readonly #log: Log;
  readonly #limits: typeof requestLimits;
  readonly #checkLimits: { readonly waitMs: number; readonly answerMs: number };
  readonly #now: () => number;
  readonly #requests: Pool;
  readonly #checks: Pool;
  readonly #listeners: Listener[] = [];
  readonly check: () => Promise<DatabaseHealth>;

  constructor({
    url,
    poolSize,
    log,
    now = () => performance.now(),
    statementMs,
    ...limits
  }: DatabaseOptions) {
    this.#address = parsePostgresUrl(url);
    this.#log = log;
    this.#limits = { ...requestLimits, ...limits };
    const { connectTimeoutMs, waitMs, answerMs, checkMs } = this.#limits;
    this.#checkLimits = { waitMs: checkMs, answerMs: checkMs };
    this.#now = now;
    const shared = { address: this.#address, connectTimeoutMs, log };
    this.#requests = new Pool({ ...shared, size: poolSize, waitMs, answerMs, statementMs });
    this.#checks = new Pool({ ...shared, size: 1, ...this.#checkLimits });
    this.check = createHealthCheck((query) => this.#checks.run(query, this.#checkLimits));
  }

  run<T>(query: Query<T>, purpose?: Purpose): Promise<T> {
    return this.#run(query, { leftMs: this.#limits.answerMs, purpose });
  }

  withSharedDeadline(): Statements {
    const until = this.#now() + this.#limits.answerMs;
    return { run: (query, purpose) => this.#run(query, { leftMs: until - this.#now(), purpose }) };
  }

  listen(channel: string, hooks: ListenHooks): void {
    const options = { address: this.#address, channel, hooks, log: this.#log };
    this.#listeners.push(startListening(options));
  }

  /** Ends every connection, within about a second. Rejects later statements. */
  async close(): Promise<void> {
    await Promise.all([this.#requests, this.#checks, ...this.#listeners].map((part) => part.close()));
  }

  async #run<T>(
    query: Query<T>,
    { leftMs, purpose = 'request' }: { leftMs: number; purpose: Purpose | undefined },
  ): Promise<T> {
    const answerMs = firstSteps.has(purpose) ? Math.min(this.#limits.firstStepMs, leftMs) : leftMs;
    try {
      if (purpose === 'background') return await this.#checks.run(query, this.#checkLimits);
      return await this.#requests.run(query, { answerMs, isSearch: purpose === 'search' });
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

interface PoolOptions {
  address: PostgresAddress;
  size: number;
  /** Maximum wait for a free connection, in milliseconds. */
  waitMs: number;
  /** Maximum time for the whole statement, in milliseconds; longer than PostgreSQL's own limit for it. */
  answerMs: number;
  /** After how many milliseconds PostgreSQL ends a statement. */
  statementMs?: number | undefined;
  /** How long a connection may take to open, in milliseconds. */
  connectTimeoutMs: number;
  log: Log;
}

const minStatementMs = 2000;
/** How long the news that PostgreSQL has cancelled a statement may take to arrive. */
const arrivalMs = 800;
const closingMs = 700;

/** Connections for short statements, each of which ends within its time limit even if the database hangs. */
class Pool {
  readonly #options: PoolOptions;
  readonly #free: Semaphore;
  readonly #freeForSearches: Semaphore;
  #connections: Connections;
  readonly #replaced = new Set<Connections>();
  #isClosed = false;

  constructor(options: PoolOptions) {
    this.#options = options;
    this.#free = new Semaphore(options.size);
    this.#freeForSearches = new Semaphore(Math.max(1, Math.floor(options.size / 3)));
    this.#connections = this.#open();
  }

  /** `answerMs` is at most that of the pool. Rejects with the error of Drizzle or postgres.js, or `DatabaseTimeout`. */
  async run<T>(
    query: Query<T>,
    { answerMs, isSearch = false }: { answerMs: number; isSearch?: boolean },
  ): Promise<T> {
    // A statement whose time is over is better not sent; timers may end a millisecond early.
    if (answerMs < 1) throw new DatabaseTimeout('NO_ANSWER');
    const waitUntil = performance.now() + Math.min(answerMs, this.#options.waitMs);
    const whenFree = <Result>(permits: Semaphore, work: () => Promise<Result>) =>
      permits.run(work, {
        waitMs: waitUntil - performance.now(),
        timeoutError: () => new DatabaseTimeout('NO_FREE_CONNECTION'),
      });
    const send = () => whenFree(this.#free, () => this.#send(query));
    // A connection is free when its query has ended, which can be after its caller has got a timeout.
    return await answerWithin(answerMs, isSearch ? whenFree(this.#freeForSearches, send) : send());
  }

  /** Ends every connection, within about a second. Rejects later statements. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([this.#connections, ...this.#replaced].map((some) => some.close(closingMs)));
  }

  async #send<T>(query: Query<T>): Promise<T> {
    // The end of an idle connection may have arrived without having been handled yet.
    await nextTurn();
    if (this.#isClosed) throw new DatabaseTimeout('CONNECTION_ENDED');
    const connections = this.#connections;
    try {
      return await answerWithin(this.#options.answerMs, connections.run(query));
    } catch (error) {
      if (!keepsConnections(error)) this.#replace(connections);
      if (error instanceof DatabaseTimeout) this.#options.log.warn('database timeout');
      throw error;
    }
  }

  /** Statements that are under way on the old connections may still be answered. */
  #replace(connections: Connections): void {
    if (this.#isClosed || connections !== this.#connections) return;
    this.#connections = this.#open();
    this.#replaced.add(connections);
    void connections.close(this.#options.answerMs).then(() => this.#replaced.delete(connections));
  }

  #open(): Connections {
    const { address, connectTimeoutMs, answerMs } = this.#options;
    const { statementMs = Math.max(minStatementMs, answerMs - arrivalMs) } = this.#options;
    return new Connections({
      address,
      connectTimeoutMs,
      session: { application_name: 'quillgate', statement_timeout: `${statementMs}ms` },
    });
  }
}
