/*
 * Patch of pg 8.23.1: `query` of a pool.
 * Gives: correctness: BullMQ recognises a lost connection, and stores a result again. Speed: named statements, see
 * `postgres-adds.ts`.
 * Until: BullMQ knows the errors of `pg`, and names its statements.
 */
import { ConnectionClosedError, type PgPool } from 'bullmq';
import pg, { type QueryConfig } from 'pg';
import type { QueryQueue } from '../stores/postgres-jobs.js';

/** Connection exceptions, and a server that shuts down, crashed or starts (PostgreSQL, appendix A). */
const lostConnection = /^(08...|57P0[123])$/;

/** PostgreSQL's code for a plan whose result had other columns when it was made: feature not supported. */
const stalePlan = '0A000';

/**
 * Makes a pool give its statements names, see `NamedStatements`, and reject with BullMQ's own error when a connection
 * is lost, and returns it. After such an error BullMQ stores a result again, but it knows only those of Redis; after
 * any other it fails the job, although its call was answered.
 */
export function withConnectionErrorsNamed(pool: pg.Pool, queries: QueryQueue): PgPool {
  // The same object: BullMQ describes the part of pg.Pool it uses in types of its own that pg's overloads do not match.
  const connection = pool as unknown as PgPool;
  const query = pool.query.bind(pool);
  const statements = new NamedStatements();
  const send = (text: string, values?: readonly unknown[]) =>
    queries.run(() => query(statements.of(text, values)));
  const sendWithFreshPlan = (text: string, values?: readonly unknown[]) =>
    send(text, values).catch((error: unknown) => {
      if (!(error instanceof pg.DatabaseError && error.code === stalePlan)) throw error;
      statements.rename(text);
      return send(text, values);
    });
  const named = async (text: string, values?: readonly unknown[]) => {
    try {
      return await sendWithFreshPlan(text, values);
    } catch (error) {
      throw isLostConnection(error) ? closed(error) : error;
    }
  };
  connection.query = named as PgPool['query'];
  return connection;
}

/** An error that the server did not send itself happened on the way to it. */
const isLostConnection = (error: unknown): error is Error =>
  error instanceof pg.DatabaseError ? lostConnection.test(error.code ?? '') : error instanceof Error;

/** Keeps the message, by which BullMQ knows a pool that has ended, and the code, by which we say why we wait. */
const closed = (error: Error): Error =>
  Object.assign(new ConnectionClosedError(error.message, error), 'code' in error && { code: error.code });

/** A bound for what each connection remembers; there are fewer statements than that. */
const maxNames = 100;

/** Names statements, so that each connection has them parsed and planned once. Their texts must contain no values. */
class NamedStatements {
  readonly #names = new Map<string, string>();
  #given = 0;

  of(text: string, values: readonly unknown[] = []): QueryConfig {
    if (values.length === 0) return { text };
    const name = this.#names.get(text) ?? this.#nameFor(text);
    return { text, values: [...values], ...(name !== undefined && { name }) };
  }

  /** Plans the statement anew under another name: the server refuses a plan whose columns a migration changed. */
  rename(text: string): void {
    this.#names.delete(text);
  }

  #nameFor(text: string): string | undefined {
    if (this.#names.size === maxNames) return undefined;
    this.#given += 1;
    const name = `quillgate-${this.#given}`;
    this.#names.set(text, name);
    return name;
  }
}
