import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Log } from '../../shared/runtime/log.js';
import { Semaphore } from '../../shared/runtime/semaphore.js';
import type { PostgresAddress } from '../../shared/urls/postgres-url.js';
import { type Connection, type Drizzle, openConnection } from './connection.js';
import { answerWithin, concernsServer, DatabaseTimeout, keepsConnection } from './errors.js';

/** One statement, made with Drizzle. */
export type Query<T> = (db: Drizzle) => PromiseLike<T>;

/** Limits of one statement, within those of the pool. */
interface StatementLimits {
  /** Maximum time for the whole statement, in milliseconds, if shorter than the pool's. */
  answerMs?: number;
  /** May take long and come in large numbers: such statements get a third of the connections at most. */
  slow?: boolean;
}

interface ConnectionPoolOptions {
  address: PostgresAddress;
  size: number;
  /** Maximum wait for a free connection, in milliseconds. */
  waitMs: number;
  /** Maximum time for the whole statement, in milliseconds; longer than PostgreSQL's own limit for it. */
  answerMs: number;
  /** How long a connection is used, in milliseconds, give or take a tenth: a new one may lead to the server that has taken over. */
  lifetimeMs: number;
  log: Log;
}

const connectTimeoutMs = 2000;
const minStatementMs = 2000;
/** Time for PostgreSQL's answer that it has cancelled a statement to arrive. */
const arrivalMs = 800;
/** Firewalls silently forget connections that are idle for some minutes. */
const idleTimeoutMs = 60_000;
const closingMs = 700;

/**
 * Connections for short statements, each of which ends within its time limit whatever the database does. postgres.js itself lets
 * queries wait without end for a connection. Connections are opened when they are needed.
 */
export class ConnectionPool {
  readonly #options: ConnectionPoolOptions;
  readonly #connections: ConnectionSet;
  readonly #free: Semaphore;
  readonly #freeForSlow: Semaphore;
  #isClosed = false;

  constructor(options: ConnectionPoolOptions) {
    this.#options = options;
    this.#connections = new ConnectionSet(options);
    this.#free = new Semaphore(options.size);
    this.#freeForSlow = new Semaphore(Math.max(1, Math.floor(options.size / 3)));
  }

  /** Runs one statement. Rejects with the error of Drizzle or postgres.js, or with `DatabaseTimeout`. */
  async run<T>(query: Query<T>, { answerMs = Infinity, slow = false }: StatementLimits = {}): Promise<T> {
    const until = performance.now() + Math.min(answerMs, this.#options.answerMs);
    const leftMs = () => until - performance.now();
    // A statement whose time is over is better not sent; timers may end a millisecond early.
    if (leftMs() < 1) throw new DatabaseTimeout('NO_ANSWER');
    const waitMs = Math.min(this.#options.waitMs, leftMs());
    const release = await (slow ? this.#acquireSlow(waitMs) : this.#acquire(this.#free, waitMs));
    // Released when the query has ended, which can be after its caller has got a timeout.
    return await answerWithin(leftMs(), this.#send(query).finally(release));
  }

  /** Ends every connection, within about a second. Rejects later statements. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#connections.close();
  }

  #acquire(permits: Semaphore, waitMs: number): Promise<() => void> {
    return permits.acquire({ waitMs, timeoutError: () => new DatabaseTimeout('NO_FREE_CONNECTION') });
  }

  async #acquireSlow(waitMs: number): Promise<() => void> {
    const until = performance.now() + waitMs;
    const releaseSlow = await this.#acquire(this.#freeForSlow, waitMs);
    try {
      const release = await this.#acquire(this.#free, until - performance.now());
      return () => {
        release();
        releaseSlow();
      };
    } catch (error) {
      releaseSlow();
      throw error;
    }
  }

  async #send<T>(query: Query<T>): Promise<T> {
    // The end of an idle connection may have arrived without having been handled yet.
    await nextTurn();
    if (this.#isClosed) throw new DatabaseTimeout('CONNECTION_ENDED');
    const connection = this.#connections.take();
    const work = async () => await query(connection.db);
    try {
      const result = await answerWithin(this.#options.answerMs, work());
      this.#connections.giveBack(connection);
      return result;
    } catch (error) {
      if (keepsConnection(error)) this.#connections.giveBack(connection);
      else this.#connections.discard(connection);
      if (concernsServer(error)) this.#connections.discardIdle();
      if (error instanceof DatabaseTimeout) this.#options.log.warn('database timeout');
      throw error;
    }
  }
}

/** The connections of a pool, in use and idle. */
class ConnectionSet {
  readonly #options: ConnectionPoolOptions;
  /** The time after which each is no longer used, by `performance.now()`. */
  readonly #endsAt = new Map<Connection, number>();
  readonly #idle = new Set<Connection>();

  constructor(options: ConnectionPoolOptions) {
    this.#options = options;
  }

  take(): Connection {
    // The one used last, so that connections beyond the load stay idle long enough to end.
    const connection = [...this.#idle].at(-1) ?? this.#open();
    this.#idle.delete(connection);
    return connection;
  }

  giveBack(connection: Connection): void {
    const endsAt = this.#endsAt.get(connection);
    if (endsAt === undefined) return;
    if (performance.now() < endsAt) this.#idle.add(connection);
    else this.discard(connection);
  }

  discard(connection: Connection): void {
    this.#forget(connection);
    void connection.close(0);
  }

  /** After an error that the idle connections would meet at this server, too. */
  discardIdle(): void {
    for (const connection of this.#idle) this.discard(connection);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#endsAt.keys()].map((connection) => connection.close(closingMs)));
  }

  #open(): Connection {
    const { address, answerMs, lifetimeMs } = this.#options;
    const statementMs = Math.max(minStatementMs, answerMs - arrivalMs);
    const connection = openConnection({
      address,
      connectTimeoutMs,
      idleTimeoutMs,
      session: { application_name: 'quillgate', statement_timeout: `${statementMs}ms` },
      onLost: () => this.#forget(connection),
    });
    // Spread, or connections that were opened together would always end together.
    this.#endsAt.set(connection, performance.now() + lifetimeMs * (0.9 + 0.2 * Math.random()));
    return connection;
  }

  #forget(connection: Connection): void {
    this.#endsAt.delete(connection);
    this.#idle.delete(connection);
  }
}
