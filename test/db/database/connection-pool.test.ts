import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { ConnectionPool } from '../../../db/database/connection-pool.js';
import { sql } from '../../../db/database/drizzle.js';
import { codeOf } from '../../../db/database/errors.js';
import { parsePostgresUrl } from '../../../shared/urls/postgres-url.js';
import { startTestDatabase, type TestDatabase } from '../../support/database.js';
import { createRecordingLog } from '../../support/recording-log.js';

let server: TestDatabase;
/** Works on the same database, past the pool that is tested. */
let operator: pg.Client;

beforeAll(async () => {
  server = await startTestDatabase();
  operator = new pg.Client({ connectionString: server.url });
  await operator.connect();
});

afterAll(async () => {
  await operator.end();
  await server.stop();
});

/** Opens a pool that the test closes when it ends. */
function open({ lifetimeMs = 60_000 } = {}): ConnectionPool {
  const address = parsePostgresUrl(server.url);
  const { log } = createRecordingLog();
  const pool = new ConnectionPool({ address, size: 2, waitMs: 1000, answerMs: 3000, lifetimeMs, log });
  onTestFinished(() => pool.close());
  return pool;
}

/** Changes what new sessions begin with, until the test ends. */
async function setForNewSessions(setting: string, value: string) {
  const { pathname } = new URL(server.url);
  const database = `alter database ${pg.escapeIdentifier(pathname.slice(1))}`;
  const reset = async () => void (await operator.query(`${database} reset ${setting}`));
  await operator.query(`${database} set ${setting} = ${value}`);
  onTestFinished(reset);
  return { reset };
}

/** The processes of PostgreSQL behind both connections of the pool. */
async function pidsOf(pool: ConnectionPool): Promise<(number | undefined)[]> {
  const pid = sql<{ pid: number }>`select pg_backend_pid() as pid, pg_sleep(0.1)`;
  const answers = await Promise.all([1, 2].map(() => pool.run((db) => db.execute<{ pid: number }>(pid))));
  return answers.map(([row]) => row?.pid).sort();
}

const write = (pool: ConnectionPool) =>
  pool.run((db) => db.execute(sql`update users set name = name where false`));

const codeOfFailure = (work: Promise<unknown>) => work.then(() => 'done', codeOf);

describe('run', () => {
  it('writes again as soon as new connections lead to a server that takes writes', async () => {
    const pool = open();
    const readOnly = await setForNewSessions('default_transaction_read_only', 'on');
    const before = await pidsOf(pool);
    expect(await codeOfFailure(write(pool))).toBe('25006');
    await readOnly.reset();

    await Promise.all([1, 2, 3, 4].map(() => write(pool)));

    const after = await pidsOf(pool);
    expect(after.filter((pid) => before.includes(pid))).toEqual([]);
  });

  it('keeps its connections when a statement failed for a reason of its own', async () => {
    const pool = open();
    await setForNewSessions('lock_timeout', `'50ms'`);
    const before = await pidsOf(pool);
    await operator.query('begin; lock table users in access exclusive mode');

    const locked = await codeOfFailure(write(pool));
    await operator.query('rollback');
    const cut = await codeOfFailure(pool.run((db) => db.execute(sql`select pg_sleep(10)`)));
    const wrong = await codeOfFailure(pool.run((db) => db.execute(sql`select nothing`)));

    expect([locked, cut, wrong]).toEqual(['55P03', '57014', '42703']);
    expect(await pidsOf(pool)).toEqual(before);
  });

  it('replaces a connection that the server has ended', async () => {
    const pool = open();
    const longest = await setForNewSessions('transaction_timeout', `'200ms'`);
    const before = await pidsOf(pool);

    // postgres.js tells that the connection has ended, and not what the server has said before.
    const ended = await codeOfFailure(pool.run((db) => db.execute(sql`select pg_sleep(1)`)));
    expect(ended).toBe('CONNECTION_CLOSED');

    await longest.reset();
    await Promise.all([1, 2, 3, 4].map(() => write(pool)));
    expect(await pidsOf(pool)).not.toEqual(before);
  });

  it('does not use a connection for longer than its lifetime', async () => {
    const pool = open({ lifetimeMs: 150 });
    const before = await pidsOf(pool);

    // The connections are old now, and have not been looked at since.
    await pool.run((db) => db.execute(sql`select pg_sleep(0.2)`));
    await pidsOf(pool);

    expect((await pidsOf(pool)).filter((pid) => before.includes(pid))).toEqual([]);
  });

  it('uses its connections again before', async () => {
    const pool = open();
    const before = await pidsOf(pool);

    expect(await pidsOf(pool)).toEqual(before);
  });
});
