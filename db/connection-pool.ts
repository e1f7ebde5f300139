import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Log } from '../shared/log.js';
import { type Connection, type Drizzle, openConnection } from './connection.js';
import { createConnectionSlots } from './connection-slots.js';
import { postgresErrorOf } from './database-trouble.js';
import { answerWithin, DatabaseSilence } from './silence.js';

/** Connections for short statements that end within a time limit whatever the database does. */
export interface ConnectionPool {
  /** Runs one statement. Rejects with the error of Drizzle or postgres.js, or with `DatabaseSilence`. */
  run<T>(query: (db: Drizzle) => PromiseLike<T>): Promise<T>;
  /** Ends every connection, within about a second. What runs afterwards is rejected. */
  close(): Promise<void>;
}

interface ConnectionPoolOptions {
  url: string;
  size: number;
  /** Longest wait for a free connection, in milliseconds. */
  waitMs: number;
  /** Longest wait for all of it, in milliseconds; more than PostgreSQL gives the statement. */
  answerMs: number;
  log: Log;
}

const connectTimeoutMs = 2000;
const statementTimeout = '2s';
/** Firewalls forget connections that are quiet for some minutes, without a word to either end. */
const idleTimeoutMs = 60_000;
const closingMs = 700;

/** Makes a pool; it opens connections when they are needed. */
export function createConnectionPool(options: ConnectionPoolOptions): ConnectionPool {
  const { size, waitMs, answerMs, log } = options;
  const slots = createConnectionSlots(size);
  const connections = createConnectionSet(options.url);
  let closed = false;

  const ask = async <T>(query: (db: Drizzle) => PromiseLike<T>): Promise<T> => {
    // That a waiting connection has ended may have arrived, but not been looked at.
    await nextTurn();
    if (closed) throw new DatabaseSilence('CONNECTION_ENDED');
    const connection = connections.take();
    const work = async () => await query(connection.db);
    try {
      const result = await answerWithin(answerMs, work());
      connections.giveBack(connection);
      return result;
    } catch (error) {
      if (endsOnlyStatement(error)) connections.giveBack(connection);
      else connections.discard(connection);
      if (error instanceof DatabaseSilence) {
        log.warn('the database is silent');
        connections.discardIdle();
      }
      throw error;
    }
  };
  return {
    run: async (query) => {
      const startedAt = performance.now();
      const release = await slots.take(waitMs);
      // The slot is free when the query has ended, which can be after its caller has been told to give up.
      const answer = ask(query).finally(release);
      return await answerWithin(answerMs - (performance.now() - startedAt), answer);
    },
    close: async () => {
      closed = true;
      await connections.close();
    },
  };
}

const endsOnlyStatement = (error: unknown): boolean => postgresErrorOf(error)?.severity === 'ERROR';

/** The connections of a pool, those in use and those that wait for the next query. */
function createConnectionSet(url: string) {
  const all = new Set<Connection>();
  const idle = new Set<Connection>();

  const forget = (connection: Connection) => {
    all.delete(connection);
    idle.delete(connection);
  };
  const open = (): Connection => {
    const connection = openConnection({
      url,
      connectTimeoutMs,
      idleTimeoutMs,
      session: { application_name: 'quillgate', statement_timeout: statementTimeout },
      onLost: () => forget(connection),
    });
    all.add(connection);
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
      if (all.has(connection)) idle.add(connection);
    },
    /** What one has met with the server, those that wait would meet too. */
    discardIdle: () => idle.forEach(discard),
    close: async () => {
      await Promise.all([...all].map((connection) => connection.close(closingMs)));
    },
  };
}
