import { ConnectionClosedError } from 'bullmq';
import pg from 'pg';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { withConnectionErrorsNamed } from '../../../../shared/queue/patches/postgres-pool.js';
import { QueryQueue } from '../../../../shared/queue/stores/postgres-jobs.js';
import { startEmptyDatabase } from '../../../support/database.js';

const database = await startEmptyDatabase();
afterAll(database.stop);

/** The error of a statement on a pool of its own. */
async function rejection(statement: string, url = database.url): Promise<unknown> {
  const pool = new pg.Pool({ connectionString: url });
  pool.on('error', () => undefined);
  const error = await withConnectionErrorsNamed(pool, new QueryQueue({ concurrency: 1, silentMs: 2000 }))
    .query(statement)
    .catch((rejected: unknown) => rejected);
  await pool.end();
  return error;
}

describe('withConnectionErrorsNamed', () => {
  it('names a connection that the server ended, and keeps its code', async () => {
    const error = await rejection('select pg_terminate_backend(pg_backend_pid())');
    expect(error).toBeInstanceOf(ConnectionClosedError);
    expect(error).toMatchObject({ code: '57P01' });
  });

  it('names a server that cannot be reached', async () => {
    const error = await rejection('select 1', 'postgres://127.0.0.1:1/none');
    expect(error).toBeInstanceOf(ConnectionClosedError);
    expect(error).toMatchObject({ code: 'ECONNREFUSED' });
  });

  it('leaves what the server says of a statement as it is', async () => {
    const error = await rejection('select nothing from nowhere');
    expect(error).toBeInstanceOf(pg.DatabaseError);
    expect(error).toMatchObject({ code: '42P01' });
  });

  it('has a statement with values planned once on a connection, and again when its columns have changed', async () => {
    const pool = new pg.Pool({ connectionString: database.url, max: 1 });
    onTestFinished(() => pool.end());
    const connection = withConnectionErrorsNamed(pool, new QueryQueue({ concurrency: 1, silentMs: 2000 }));
    await connection.query('create table changing (a integer)');
    await connection.query('insert into changing values (1)');
    const read = () => connection.query('select * from changing where a = $1', [1]);
    const prepared = () =>
      connection.query('select statement, generic_plans + custom_plans as uses from pg_prepared_statements');
    await read();
    await read();
    expect((await prepared()).rows).toEqual([
      { statement: 'select * from changing where a = $1', uses: '2' },
    ]);
    await connection.query('alter table changing add column b integer default 2');
    expect((await read()).rows).toEqual([{ a: 1, b: 2 }]);
  });
});
