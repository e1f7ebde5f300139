import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { sql } from 'drizzle-orm';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { openDatabase } from '../../db/client.js';
import { migrateDatabase, pendingMigrations } from '../../db/migrate.js';
import { freePort } from '../../dev/free-port.js';
import { startEmptyDatabase } from '../support/database.js';
import { createRecordingLog } from '../support/recording-log.js';
import { openWire } from '../support/wire.js';

let url: string;

beforeEach(async () => {
  const server = await startEmptyDatabase();
  url = server.url;
  return server.stop;
});

function open() {
  const database = openDatabase({ url, poolSize: 1, log: createRecordingLog().log });
  onTestFinished(() => database.close());
  return database;
}

const code = (word: string) => expect.objectContaining({ cause: expect.objectContaining({ code: word }) });

describe('migrateDatabase', () => {
  it('brings an empty database up to date, however many processes do so at once', async () => {
    const database = open();
    expect((await database.check()).migrations.status).toBe('failing');

    await Promise.all(Array.from({ length: 6 }, () => migrateDatabase(url)));

    expect((await database.check()).migrations.status).toBe('ok');
    const posts = await database.run((db) => db.execute(sql`select * from posts`));
    expect(posts.length).toBe(0);
  });

  it('leaves a database alone that a newer version has migrated, also without the right to change it', async () => {
    const database = open();
    await migrateDatabase(url);
    const newer = sql`insert into drizzle.__drizzle_migrations (hash, created_at) values ('newer', 4102444800000)`;
    await database.run((db) => db.execute(newer));
    await database.run((db) => db.execute(sql`create role reader login password 'reader'`));
    await database.run((db) => db.execute(sql`grant pg_read_all_data to reader`));
    const readers = new URL(url);
    readers.username = 'reader';
    readers.password = 'reader';

    await migrateDatabase(url);
    await migrateDatabase(readers.href);

    const applied = sql`select 1 from drizzle.__drizzle_migrations where created_at = 4102444800000`;
    expect((await database.run((db) => db.execute(applied))).length).toBe(1);
    expect(await database.run(pendingMigrations)).toBe(0);
    expect((await database.check()).migrations.status).toBe('ok');
  });

  it('is not cut short by the time limits of the role', async () => {
    const database = open();
    await database.run((db) => db.execute(sql`alter role quillgate set statement_timeout = 1`));

    await migrateDatabase(url);
  });

  it('rejects soon when nobody listens, or somebody does who says nothing', async () => {
    const nobody = new URL(url);
    nobody.port = String(await freePort());
    const wire = await openWire(Number(new URL(url).port));
    onTestFinished(() => wire.close());
    wire.freeze();
    const silent = new URL(url);
    silent.port = String(wire.port);
    const startedAt = performance.now();

    await expect(migrateDatabase(nobody.href)).rejects.toEqual(code('ECONNREFUSED'));
    expect(performance.now() - startedAt).toBeLessThan(1000);
    await expect(migrateDatabase(silent.href)).rejects.toEqual(code('CONNECT_TIMEOUT'));
    expect(performance.now() - startedAt).toBeLessThan(7000);
  });
});

describe('the migrations', () => {
  it('are those that the schema needs', async () => {
    const root = fileURLToPath(new URL('../../', import.meta.url));
    const copy = mkdtempSync(join(tmpdir(), 'quillgate-test-'));
    onTestFinished(() => rmSync(copy, { recursive: true, force: true }));
    cpSync(join(root, 'db', 'migrations'), copy, { recursive: true });
    const before = readdirSync(copy, { recursive: true }).sort();

    // drizzle-kit puts `./` in front of the folder, whatever it is.
    const out = relative(root, copy);
    const generate = ['generate', '--dialect', 'postgresql', '--schema', 'db/schema.ts', '--out', out];
    const { stdout } = await promisify(execFile)('npx', ['drizzle-kit', ...generate], { cwd: root });

    expect(stdout).toContain('No schema changes');
    expect(readdirSync(copy, { recursive: true }).sort()).toEqual(before);
  });
});
