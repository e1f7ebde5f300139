import { afterAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { migrate } from '../../../cli/commands/migrate.js';
import { openSession } from '../../../db/database/connections.js';
import { sql } from '../../../db/database/drizzle.js';
import { migrateDatabase } from '../../../db/database/migrate.js';
import { freePort } from '../../../dev/free-port.js';
import { parsePostgresUrl } from '../../../shared/urls/postgres-url.js';
import { startEmptyDatabase } from '../../support/database.js';
import { patience } from '../../support/patience.js';
import { createDatabase } from '../../support/postgres-server.js';
import { collectOutput, complaintOf, printedBy } from '../output.js';

const server = await startEmptyDatabase();
afterAll(server.stop);
let url: string;
beforeEach(async () => {
  url = await createDatabase(server.url);
});

/** The sentence in which `quillgate migrate` says why it cannot. */
const complaintAbout = (databaseUrl: string) => complaintOf(migrate({ DATABASE_URL: databaseUrl }));

const sentence = (code: string) =>
  expect.stringMatching(
    new RegExp(`^The schema cannot be brought up to date: the database [^\n]+ \\(${code}\\)\\.$`),
  );

function open() {
  const connection = openSession({
    address: parsePostgresUrl(url),
    connectTimeoutMs: 1000,
    session: { application_name: 'test' },
  });
  onTestFinished(() => connection.close(0));
  return connection.db;
}

describe('migrate', () => {
  it('what is wrong -> a sentence without the address', async () => {
    const wrong = new URL(url);
    wrong.password = 'canary';
    expect(await complaintAbout(wrong.href)).toEqual(sentence('28P01'));
    wrong.port = String(await freePort());
    expect(await complaintAbout(wrong.href)).toEqual(sentence('ECONNREFUSED'));
    await open().execute(sql`create table users (id int)`);
    expect(await complaintAbout(url)).toEqual(sentence('42P07'));
  });

  it("the queue's part fails -> a sentence", async () => {
    const db = open();
    // Roles are the server's, which others use too.
    const name = `tenant_${process.pid}`;
    await db.execute(sql.raw(`create role ${name} login password 'tenant'`));
    await db.execute(sql.raw(`create schema ${name} authorization ${name}`));
    const tenants = new URL(url);
    tenants.username = name;
    tenants.password = 'tenant';
    expect(await complaintAbout(tenants.href)).toBe(
      "The schema of the queue's store cannot be brought up to date (42501).",
    );
  });

  it('an older schema, and one of a newer release -> is brought up to date, or left, and that alone is said', async () => {
    expect(await printedBy(() => migrate({ DATABASE_URL: url }))).toEqual({
      stdout: 'The schema is up to date.\n',
      stderr: '',
    });
    const newer = sql`insert into quillgate_migrations (created_at, hash) values (4102444800000, 'newer')`;
    await open().execute(newer);
    const output = await printedBy(() => migrate({ DATABASE_URL: url }));
    expect(output.stdout).toMatch(/^A newer release has migrated this database already; [^\n]+\n$/);
    await open().execute(
      sql`insert into bullmq.migration (version, name, min_client_version) values (1000, 'newer', 1000)`,
    );
    expect(await complaintAbout(url)).toBe(
      "The schema of the queue's store cannot be brought up to date: the schema is of a newer release that this one cannot work with: upgrade this program.",
    );
  });

  it('another migration that runs -> says after a while that it waits for it', async () => {
    const output = collectOutput();
    let others: Promise<unknown> | undefined;
    let ours: Promise<void> | undefined;
    await open()
      .transaction(async (transaction) => {
        // The first migration waits for this table's fate, and the second for the first.
        await transaction.execute(sql`create table users (id int)`);
        others = migrateDatabase(url);
        const locks = sql`select from pg_locks where locktype = 'advisory'
          and database = (select oid from pg_database where datname = current_database())`;
        await vi.waitFor(async () => expect((await transaction.execute(locks)).length).toBe(1), patience);
        ours = migrate({ DATABASE_URL: url }, { noticeAfterMs: 10 });
        await vi.waitFor(() => expect(output.stderr).not.toBe(''), patience);
        transaction.rollback();
      })
      .catch(() => undefined);
    await Promise.all([others, ours]);
    expect(output).toEqual({
      stdout: 'The schema is up to date.\n',
      stderr: 'Another migration is running; waiting until it ends.\n',
    });
  });
});
