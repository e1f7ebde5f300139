import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { type Database, openDatabase } from '../../../db/database/client.js';
import { sql } from '../../../db/database/drizzle.js';
import { codeOf } from '../../../db/database/errors.js';
import { Failure } from '../../../shared/failures.js';
import { generousLimits, startTestDatabase, type TestDatabase } from '../../support/database.js';
import { createRecordingLog } from '../../support/recording-log.js';

let server: TestDatabase;
/** Works on the same database, past the connections that are tested. */
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

/** Opens a database with two connections for requests, which the test closes when it ends. */
function open(url = server.url): Database {
  const { log } = createRecordingLog();
  const database = openDatabase({ url, poolSize: 2, ...generousLimits, log });
  onTestFinished(() => database.close());
  return database;
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

/** The processes of PostgreSQL behind both connections. */
const pidsOf = async (database: Database): Promise<(number | undefined)[]> =>
  (await Promise.all([pidOf(database), pidOf(database)])).sort();

/** The process of PostgreSQL that this query runs in. */
async function pidOf(database: Database): Promise<number | undefined> {
  const pid = sql`select pg_backend_pid() as pid`;
  const [row] = await database.run((db) => db.execute<{ pid: number }>(pid));
  return row?.pid;
}

const write = (database: Database) =>
  database.run((db) => db.execute(sql`update users set name = name where false`));

const codeOfFailure = (work: Promise<unknown>) =>
  work.then(
    () => 'done',
    (error: unknown) => codeOf(error instanceof Failure ? error.cause : error),
  );

describe('Connections', () => {
  it('new connections that lead to a server that takes writes -> writes again', async () => {
    const database = open();
    const readOnly = await setForNewSessions('default_transaction_read_only', 'on');
    const before = await pidsOf(database);
    expect(await codeOfFailure(write(database))).toBe('25006');
    await readOnly.reset();

    await Promise.all([1, 2, 3, 4].map(() => write(database)));

    const after = await pidsOf(database);
    expect(after.filter((pid) => before.includes(pid))).toEqual([]);
  });

  it('a statement that fails for a reason of its own -> keeps its connections', async () => {
    const database = open();
    await setForNewSessions('lock_timeout', `'50ms'`);
    const before = await pidsOf(database);
    await operator.query('begin; lock table users in access exclusive mode');

    const locked = await codeOfFailure(write(database));
    await operator.query('rollback');
    // Both on the connection that was used last.
    await database.run((db) => db.execute(sql`set statement_timeout = 100`));
    const cut = await codeOfFailure(database.run((db) => db.execute(sql`select pg_sleep(60)`)));
    const wrong = await codeOfFailure(database.run((db) => db.execute(sql`select nothing`)));

    expect([locked, cut, wrong]).toEqual(['55P03', '57014', '42703']);
    expect(await pidsOf(database)).toEqual(before);
  });

  it('a connection that the server has ended -> is replaced', async () => {
    const database = open();
    const longest = await setForNewSessions('transaction_timeout', `'200ms'`);
    const before = await pidsOf(database);

    // postgres.js tells that the connection has ended, and not what the server has said before.
    const ended = await codeOfFailure(database.run((db) => db.execute(sql`select pg_sleep(60)`)));
    expect(ended).toBe('CONNECTION_CLOSED');

    await longest.reset();
    await Promise.all([1, 2, 3, 4].map(() => write(database)));
    expect(await pidsOf(database)).not.toEqual(before);
  });

  it('a connection whose end has just arrived -> nothing is sent on it', async () => {
    const accepted: Socket[] = [];
    const proxy = createServer((socket) => {
      accepted.push(socket);
      socket.pipe(connect(Number(new URL(server.url).port), '127.0.0.1')).pipe(socket);
    }).listen(0, '127.0.0.1');
    await once(proxy, 'listening');
    onTestFinished(() => void proxy.close());
    const { port } = proxy.address() as AddressInfo;
    const url = new URL(server.url);
    url.port = String(port);
    const database = open(url.href);
    await write(database);
    const bell = connect(port, '127.0.0.1');
    await once(proxy, 'connection');
    const [used, ringer] = accepted;

    // Both arrive in one turn of the event loop.
    used?.destroy();
    ringer?.write('x');
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50);
    await once(bell, 'data');
    await write(database);

    bell.destroy();
  });

  it('queries that follow one another -> run on one connection', async () => {
    const database = open();
    await pidsOf(database);
    const used = new Set<number | undefined>();

    for (const _ of [1, 2, 3]) used.add(await pidOf(database));

    expect(used.size).toBe(1);
  });
});
