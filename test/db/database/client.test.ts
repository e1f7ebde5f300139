import pg from 'pg';
import { afterAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { createUserStore } from '../../../db/access/users.js';
import { type Database, openDatabase } from '../../../db/database/client.js';
import type { Drizzle } from '../../../db/database/connections.js';
import { sql } from '../../../db/database/drizzle.js';
import { codeOf, isUniqueViolation } from '../../../db/database/errors.js';
import { freePort } from '../../../dev/free-port.js';
import { Failure } from '../../../shared/failures.js';
import { generousLimits, openTestDatabase } from '../../support/database.js';
import { patience } from '../../support/patience.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { openWire, type Wire } from '../../support/wire.js';

const server = await openTestDatabase();
afterAll(server.stop);
/** Holds back the statements that wait for a lock. */
const holder = new pg.Client({ connectionString: server.url });
await holder.connect();
afterAll(() => holder.end());

/** Opens a database that the test closes when it ends. */
function open({ url = server.url, poolSize = 2, ...limits }: OpenOptions = {}) {
  const { log, text } = createRecordingLog();
  const database = openDatabase({ url, poolSize, log, ...limits });
  onTestFinished(() => database.close());
  return { database, logText: text };
}

type OpenOptions = Partial<Parameters<typeof openDatabase>[0]>;

/** Opens a database behind a wire that can be frozen. */
async function openBehindWire(limits: OpenOptions = {}) {
  const wire = await openWire(Number(new URL(server.url).port));
  onTestFinished(() => wire.close());
  return { ...open({ url: throughWire(wire), ...limits }), wire };
}

const throughWire = ({ port }: Pick<Wire, 'port'>) => changed((url) => (url.port = String(port)));

function changed(change: (url: URL) => void): string {
  const url = new URL(server.url);
  change(url);
  return url.href;
}

const one = (database: Database) => database.run((db) => db.execute(sql`select 1 as one`));
const sleep = (database: Database, seconds: number) =>
  database.run((db) => db.execute(sql`select pg_sleep(${seconds})`));

/** A statement that lasts until `release`, which is given once nothing but that ends it. */
async function holdBack(): Promise<{ held: Query; release: () => Promise<unknown> }> {
  await holder.query('select pg_advisory_lock(1)');
  const release = () => holder.query('select pg_advisory_unlock_all()');
  onTestFinished(async () => void (await release()));
  return { held: (db) => db.execute(sql`select pg_advisory_xact_lock_shared(1)`), release };
}

/** Does the work while so many statements run that nothing ends, and then has them end. */
async function whileHeld<T>(
  { database, count, kind }: { database: Database; count: number; kind?: Parameters<Database['run']>[1] },
  work: () => Promise<T>,
): Promise<T> {
  const { held, release } = await holdBack();
  const ended = vi.fn();
  const slow = Array.from({ length: count }, () => database.run(held, kind).finally(ended));
  const result = await work();
  expect(ended).not.toHaveBeenCalled();
  await release();
  await Promise.all(slow);
  return result;
}

type Query = (db: Drizzle) => PromiseLike<unknown>;

/** The code that the work fails with, and that of the reason. */
async function failure(work: Promise<unknown>): Promise<{ code: string; reason: string | undefined }> {
  const error = await work.then(
    () => new Error('it did not fail'),
    (reason: unknown) => reason,
  );
  if (!(error instanceof Failure)) throw error;
  return { code: error.code, reason: codeOf(error.cause) };
}

const code = 'database_unavailable';

/** Ends all connections that requests use, and waits until their processes are gone. */
async function terminateConnections(): Promise<void> {
  const others = sql`datname = current_database() and application_name = 'quillgate' and pid <> pg_backend_pid()`;
  await server.database.run((db) =>
    db.execute(sql`select pg_terminate_backend(pid, 5000) from pg_stat_activity where ${others}`),
  );
  // One trip more, in which that they have ended arrives here too.
  await one(server.database);
}

describe('run', () => {
  it('a statement -> what it gives, with texts in arrays as they were', async () => {
    const { database } = open();
    const texts = ['plain', '', 'a,b', '{}', '"', '\\', 'a\\"b', 'NULL', ' ', '\n', '😀'];

    const rows = await database.run((db) => db.execute(sql`select ${sql.param(texts)}::text[] as texts`));

    expect([...rows]).toEqual([{ texts }]);
  });

  it('a statement that is wrong -> what is wrong with it, as it is', async () => {
    const { database } = open();
    const insert = () =>
      database.run((db) =>
        db.execute(sql`insert into users (name, secret_hash) values ('twice', ${Buffer.from('x')})`),
      );
    await insert();

    const error = await insert().catch((reason: unknown) => reason);

    expect(error).not.toBeInstanceOf(Failure);
    expect(isUniqueViolation(error, 'users_pkey')).toBe(true);
    expect(isUniqueViolation(error, 'posts_slug')).toBe(false);
    await expect(database.run((db) => db.execute(sql`select nothing`))).rejects.not.toBeInstanceOf(Failure);
  });

  it('a statement -> the server cuts it after two seconds', async () => {
    const { database } = open();

    const rows = await database.run((db) => db.execute(sql`show statement_timeout`));

    expect([...rows]).toEqual([{ statement_timeout: '2s' }]);
  });

  it('slow statements that have all connections -> waits only so long for one', async () => {
    const { database } = open({ waitMs: 50, answerMs: generousLimits.answerMs });
    const failed = await whileHeld({ database, count: 2 }, () => failure(one(database)));
    expect(failed).toMatchObject({ code, reason: 'NO_FREE_CONNECTION' });
    await one(database);
  });

  it('a statement that first waits for a connection -> is given up by the time in all, before the server cuts it', async () => {
    const { database } = open({
      poolSize: 1,
      waitMs: generousLimits.waitMs,
      answerMs: 500,
      statementMs: 490,
    });
    const [, failed] = await Promise.all([
      Promise.allSettled([sleep(database, 0.4)]),
      failure(sleep(database, 10)),
    ]);
    // Where the first one takes as long, both times end together; the server's own cut would have another code.
    const reasons = ['NO_ANSWER', 'NO_FREE_CONNECTION'];
    expect(reasons.map((reason) => ({ code, reason }))).toContainEqual(failed);
  });

  it('a statement that others are to follow -> is given up sooner, and its connection goes on', async () => {
    const { database, logText } = open({ ...generousLimits, poolSize: 1, firstStepMs: 50 });
    const { held, release } = await holdBack();
    const first = database.run(held, 'auth');
    expect(await failure(first)).toEqual({ code, reason: 'NO_ANSWER' });
    await release();
    await one(database);
    expect(logText()).not.toContain('database timeout');
  });
});

describe('run, for searches', () => {
  const search = (database: Database, query: Query) => database.run(query, 'search');
  const facts = async (work: Promise<unknown>) =>
    work.catch((error: unknown) => (error instanceof Failure ? error.facts : error));

  it('many -> leave connections to everything else', async () => {
    const { database } = open({ ...generousLimits, poolSize: 3 });
    await whileHeld({ database, count: 10, kind: 'search' }, () =>
      Promise.all(Array.from({ length: 10 }, () => one(database))),
    );
  });

  it('too many -> says so', async () => {
    const { database } = open({ poolSize: 3, waitMs: 100, answerMs: generousLimits.answerMs });
    const another: Query = (db) => db.execute(sql`select 1`);
    const refused = await whileHeld({ database, count: 1, kind: 'search' }, () =>
      facts(search(database, another)),
    );
    expect(refused).toMatchObject({ detail: 'Too many searches are running at the moment.' });
  });

  it('one that takes too long -> does not look like an outage', async () => {
    const { database } = open({ poolSize: 1, answerMs: generousLimits.answerMs });
    await database.run((db) => db.execute(sql`set statement_timeout = 100`));

    expect(await facts(search(database, (db) => db.execute(sql`select pg_sleep(10)`)))).toMatchObject({
      detail: 'The search took too long: make it narrower.',
      retryAfterMs: 60_000,
    });
    expect(await facts(sleep(database, 10))).not.toHaveProperty('detail');
  });
});

describe('run, in the background', () => {
  it('statements of requests that have all connections -> it does not wait for them', async () => {
    const { database } = open(generousLimits);
    await whileHeld({ database, count: 10 }, () => createUserStore(database).digests());
  });
});

describe('withSharedDeadline', () => {
  it('statements that follow one another -> have the time of one together', async () => {
    let nowMs = 0;
    const { database } = open({ ...generousLimits, poolSize: 1, now: () => nowMs });
    const statements = database.withSharedDeadline();
    const query: Query = (db) => db.execute(sql`select 1`);
    await statements.run(query);
    nowMs += generousLimits.answerMs - 2000;
    await statements.run(query);
    nowMs += 2000;
    expect(await failure(statements.run(query))).toEqual({ code, reason: 'NO_ANSWER' });
    await one(database);
  });
});

describe('run, when the server goes silent', () => {
  it('statements that wait, run or connect -> fail, and work again once the server does', async () => {
    const { database, wire, logText } = await openBehindWire({ waitMs: 100, answerMs: 200 });
    await vi.waitUntil(() => one(database).catch(() => undefined), patience);
    wire.freeze();
    const failed = await Promise.all(Array.from({ length: 5 }, () => failure(one(database))));
    // Now while connecting.
    failed.push(await failure(one(database)));
    wire.thaw();
    await vi.waitUntil(() => one(database).catch(() => undefined), patience);
    expect(failed.map((end) => end.code)).toEqual(failed.map(() => code));
    expect(logText()).toContain('database timeout');
  });

  it('a database that is closed -> what waits fails at once, not when it has waited for long enough', async () => {
    const { database, wire } = await openBehindWire(generousLimits);
    await one(database);
    wire.freeze();
    const waiting = failure(one(database));

    await database.close();

    expect(await waiting).toMatchObject({ code, reason: expect.stringContaining('CONNECTION') });
    expect((await failure(one(database))).code).toBe(code);
  });
});

describe('run, when connections are cut', () => {
  it('a write half-way -> fails as a whole, and the next one works', async () => {
    const { database } = open({ poolSize: 1 });
    const write = failure(
      database.run((db) =>
        db.execute(sql`insert into users (name, secret_hash)
          select 'half-' || n, '\\x00'::bytea from generate_series(1, 20) n where pg_sleep(0.1)::text = ''`),
      ),
    );
    const writing = sql`select 1 from pg_stat_activity where state = 'active' and query like 'insert%half-%'`;
    await vi.waitUntil(
      async () => (await server.database.run((db) => db.execute(writing))).length > 0,
      patience,
    );
    await terminateConnections();

    expect((await write).code).toBe(code);

    // On a connection that is opened anew.
    const rows = await database.run((db) => db.execute(sql`select 1 from users where name like 'half-%'`));
    expect(rows.length).toBe(0);
  });

  it('connections that had nothing to do -> nothing is noticed', async () => {
    const { database } = open();
    await Promise.all([sleep(database, 0.05), sleep(database, 0.05)]);

    await terminateConnections();

    await Promise.all([one(database), one(database)]);
  });
});

describe('run, when there is no database to use', () => {
  const nowhere = async () => throughWire({ port: await freePort() });
  const behindProxy = async () => {
    const wire = await openWire(await freePort());
    onTestFinished(() => wire.close());
    return throughWire(wire);
  };

  it.each([
    ['nobody listens', nowhere, 'ECONNREFUSED'],
    ['a proxy has nobody to pass it on to', behindProxy, 'CONNECTION_CLOSED'],
    ['the password is wrong', async () => changed((url) => (url.password = 'canary')), '28P01'],
    ['there is no such database', async () => changed((url) => (url.pathname = '/canary')), '3D000'],
    [
      'the name cannot be found',
      async () => changed((url) => (url.hostname = 'canary.invalid')),
      'ENOTFOUND',
    ],
  ])('%s -> fails soon and tells nothing secret', async (_name, where, reason) => {
    // What fails does so before the time to wait has passed.
    const { database, logText } = open({ url: await where(), ...generousLimits, checkMs: 20_000 });

    const failed = await failure(one(database));
    const { database: reached, migrations } = await database.check();

    expect(failed).toEqual({ code, reason });
    expect(reached).toEqual({ status: 'failing', detail: expect.stringContaining(reason) });
    expect(migrations.status).toBe('failing');
    expect(logText()).toContain(reason);
    expect(logText() + JSON.stringify(reached)).not.toContain('canary');
  });

  it('a schema that is missing -> fails', async () => {
    const url = changed((to) => (to.pathname = '/postgres'));
    const { database } = open({ url });

    expect((await failure(database.run((db) => db.execute(sql`select * from posts`)))).code).toBe(code);
    expect(await database.check()).toEqual({
      database: { status: 'ok' },
      migrations: {
        status: 'failing',
        detail: 'the schema is missing or older than this release: run quillgate migrate',
      },
    });
  });
});

describe('check', () => {
  const well = { database: { status: 'ok' }, migrations: { status: 'ok' } };

  it('requests that use every connection -> finds nothing wrong', async () => {
    const { database } = open(generousLimits);
    const checks = await whileHeld({ database, count: 2 }, () =>
      Promise.all(Array.from({ length: 10 }, () => database.check())),
    );
    expect(checks).toEqual(checks.map(() => well));
  });

  it('a server that is silent -> fails, and not any more once it answers', async () => {
    const { database, wire } = await openBehindWire({ checkMs: 300 });
    const becomesWell = () => vi.waitFor(async () => expect(await database.check()).toEqual(well), patience);
    await becomesWell();
    wire.freeze();
    const health = await database.check();
    expect(health.database).toEqual({
      status: 'failing',
      detail: 'the database cannot be reached (NO_ANSWER)',
    });
    wire.thaw();
    await becomesWell();
  });
});
