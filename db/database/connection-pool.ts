import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Log } from '../../shared/runtime/log.js';
import type { PostgresAddress } from '../../shared/urls/postgres-url.js';
import { type Connection, type Drizzle, openConnection } from './connection.js';
import { createConnectionSlots } from './connection-slots.js';
import { answerWithin, DatabaseTimeout } from './database-timeout.js';
import { concernsServer, keepsConnection } from './errors.js';

/** One statement, made with Drizzle. */
export type Query<T> = (db: Drizzle) => PromiseLike<T>;

/** Connections for short statements that end within a time limit whatever the database does. */
export interface ConnectionPool {
  /** Runs one statement. Rejects with the error of Drizzle or postgres.js, or with `DatabaseTimeout`. */
  run<T>(query: Query<T>, limits?: StatementLimits): Promise<T>;
  /** Ends every connection, within about a second. What runs afterwards is rejected. */
  close(): Promise<void>;
}

/** What holds for a statement beside the limits of the pool. */
interface StatementLimits {
  /** Longest wait for all of it, in milliseconds, if less than the pool's. */
  answerMs?: number;
  /** May take long and come in any number: others go before, see `ConnectionSlots`. */
  slow?: boolean;
}

interface ConnectionPoolOptions {
  address: PostgresAddress;
  size: number;
  /** Longest wait for a free connection, in milliseconds. */
  waitMs: number;
  /** Longest wait for all of it, in milliseconds; more than PostgreSQL gives the statement. */
  answerMs: number;
  /** About how long a connection is used, in milliseconds: a new one may lead to the server that has taken over. */
  lifetimeMs: number;
  log: Log;
}

const connectTimeoutMs = 2000;
const minStatementMs = 2000;
/** PostgreSQL's answer that it has cut a statement still has to arrive. */
const arrivalMs = 800;
/** Firewalls forget connections that are quiet for some minutes, without a word to either end. */
const idleTimeoutMs = 60_000;
const closingMs = 700;

/** Makes a pool; it opens connections when they are needed. */
export function createConnectionPool(options: ConnectionPoolOptions): ConnectionPool {
  const { size, waitMs, answerMs, log } = options;
  const slots = createConnectionSlots(size);
  const connections = createConnectionSet(options);
  let closed = false;

  const ask = async <T>(query: Query<T>): Promise<T> => {
    // That a waiting connection has ended may have arrived, but not been looked at.
    await nextTurn();
    if (closed) throw new DatabaseTimeout('CONNECTION_ENDED');
    const connection = connections.take();
    const work = async () => await query(connection.db);
    try {
      const result = await answerWithin(answerMs, work());
      connections.giveBack(connection);
      return result;
    } catch (error) {
      if (keepsConnection(error)) connections.giveBack(connection);
      else connections.discard(connection);
      if (concernsServer(error)) connections.discardIdle();
      if (error instanceof DatabaseTimeout) log.warn('database timeout');
      throw error;
    }
  };
  return {
    run: async (query, limits = {}) => {
      const until = performance.now() + Math.min(limits.answerMs ?? answerMs, answerMs);
      const left = () => until - performance.now();
      // What would be told to give up at once is better not begun.
      if (left() <= 0) throw new DatabaseTimeout('NO_ANSWER');
      const release = await slots.take({ waitMs: Math.min(waitMs, left()), slow: limits.slow ?? false });
      // The slot is free when the query has ended, which can be after its caller has been told to give up.
      const answer = ask(query).finally(release);
      return await answerWithin(left(), answer);
    },
    close: async () => {
      closed = true;
      await connections.close();
    },
  };
}

/** The connections of a pool, those in use and those that wait for the next query. */
function createConnectionSet({ address, answerMs, lifetimeMs }: ConnectionPoolOptions) {
  const statementMs = Math.max(minStatementMs, answerMs - arrivalMs);
  /** Each with the time, of the process's own clock, at which it shall not be used any more. */
  const all = new Map<Connection, number>();
  const idle = new Set<Connection>();

  const forget = (connection: Connection) => {
    all.delete(connection);
    idle.delete(connection);
  };
  const open = (): Connection => {
    const connection = openConnection({
      address,
      connectTimeoutMs,
      idleTimeoutMs,
      session: { application_name: 'quillgate', statement_timeout: `${statementMs}ms` },
      onLost: () => forget(connection),
    });
    // Spread a little, or those that were opened together would end together for ever.
    all.set(connection, performance.now() + lifetimeMs * (0.9 + 0.2 * Math.random()));
    return connection;
  };
  const discard = (connection: Connection) => {
    forget(connection);
    void connection.close(0);
  };
  return {
    discard,
    take: (): Connection => {
      // The one used last, so that those too many become idle for long enough to end.
      const connection = [...idle].at(-1) ?? open();
      idle.delete(connection);
      return connection;
    },
    giveBack: (connection: Connection) => {
      const endsAt = all.get(connection);
      if (endsAt === undefined) return;
      if (performance.now() < endsAt) idle.add(connection);
      else discard(connection);
    },
    /** What one has met with the server, those that wait would meet too. */
    discardIdle: () => idle.forEach(discard),
    close: async () => {
      await Promise.all([...all.keys()].map((connection) => connection.close(closingMs)));
    },
  };
}
