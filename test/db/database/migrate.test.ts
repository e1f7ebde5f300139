import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { openDatabase } from '../../../db/database/client.js';
import { type SQL, sql } from '../../../db/database/drizzle.js';
import { migrateDatabase } from '../../../db/database/migrate.js';
import { PostStore } from '../../../db/posts/post-store.js';
import { startEmptyDatabase } from '../../support/database.js';
import { createDatabase } from '../../support/postgres-server.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { openWire } from '../../support/wire.js';
import { fields } from '../post-stores.js';

const server = await startEmptyDatabase();
afterAll(server.stop);
let url: string;
beforeEach(async () => {
  url = await createDatabase(server.url);
});

function open(as = url) {
  const database = openDatabase({ url: as, poolSize: 1, log: createRecordingLog().log });
  onTestFinished(() => database.close());
  return database;
}

/** Makes a role that may do nothing but what the statements allow, and gives the URL by which it comes in. */
async function addRole(name: string, ...statements: SQL[]): Promise<string> {
  const database = open();
  const create = sql.raw(`create role ${name} login password '${name}'`);
  for (const statement of [create, ...statements]) await database.run((db) => db.execute(statement));
  const roles = new URL(url);
  roles.username = name;
  roles.password = name;
  return roles.href;
}

const code = (word: string) => expect.objectContaining({ cause: expect.objectContaining({ code: word }) });

describe('migrateDatabase', () => {
  it('an empty database -> is brought up to date, however many processes do so at once', async () => {
    const database = open();
    expect((await database.check()).migrations.status).toBe('failing');

    await Promise.all(Array.from({ length: 3 }, () => migrateDatabase(url)));

    expect((await database.check()).migrations.status).toBe('ok');
    const posts = await database.run((db) => db.execute(sql`select * from posts`));
    expect(posts.length).toBe(0);
  });

  it('a database that a newer version has migrated -> is left alone, also without the right to change it', async () => {
    const database = open();
    await migrateDatabase(url);
    const newer = sql`insert into quillgate_migrations (hash, created_at) values ('newer', 4102444800000)`;
    await database.run((db) => db.execute(newer));
    const readers = await addRole('reader', sql`grant pg_read_all_data to reader`);

    expect(await migrateDatabase(url)).toBe('newer');
    expect(await migrateDatabase(readers)).toBe('newer');

    const applied = sql`select 1 from quillgate_migrations where created_at = 4102444800000`;
    expect((await database.run((db) => db.execute(applied))).length).toBe(1);
    expect((await database.check()).migrations).toEqual({
      status: 'ok',
      detail: 'a newer release has migrated this database',
    });
  });

  it('a search_path -> works there, without rights on the rest, beside an installation in public', async () => {
    const tenants = await addRole(
      'tenant',
      sql`create schema own authorization tenant`,
      sql`alter role tenant set search_path = own`,
    );
    await migrateDatabase(url);
    await migrateDatabase(tenants);
    await migrateDatabase(tenants);

    const database = open(tenants);
    expect((await database.check()).migrations.status).toBe('ok');
    const store = new PostStore(database);
    const { post } = await store.create(fields({ content: 'A durable queue' }));
    const found = await store.list({ limit: 2, drafts: false, search: 'queues' });
    expect(found.posts).toEqual([post]);

    const schemas = sql`select schemaname, count(*)::int from pg_tables
      where schemaname not in ('pg_catalog', 'information_schema') group by 1 order by 1`;
    expect(await open().run((db) => db.execute(schemas))).toEqual([
      { schemaname: 'own', count: 12 },
      { schemaname: 'public', count: 12 },
    ]);
  });

  it('what another application has applied -> is not taken for its own', async () => {
    const database = open();
    for (const statement of [
      sql`create schema drizzle`,
      sql`create table drizzle.__drizzle_migrations (id serial primary key, hash text not null, created_at bigint)`,
      sql`insert into drizzle.__drizzle_migrations (hash, created_at) values ('theirs', 4102444800000)`,
    ])
      await database.run((db) => db.execute(statement));
    expect((await database.check()).migrations.status).toBe('failing');

    await migrateDatabase(url);

    expect((await database.run((db) => db.execute(sql`select * from posts`))).length).toBe(0);
    expect((await database.check()).migrations.status).toBe('ok');
    const theirs = sql`select hash from drizzle.__drizzle_migrations`;
    expect(await database.run((db) => db.execute(theirs))).toEqual([{ hash: 'theirs' }]);
  });

  it('a statement that fails -> nothing at all is changed', async () => {
    const database = open();
    await database.run((db) => db.execute(sql`create table users (id int)`));

    await expect(migrateDatabase(url)).rejects.toEqual(code('42P07'));

    const tables = sql`select tablename from pg_tables where schemaname = 'public'`;
    expect(await database.run((db) => db.execute(tables))).toEqual([{ tablename: 'users' }]);
  });

  it('time limits of the role -> do not cut it short', async () => {
    const hurried = await addRole(
      'hurried',
      sql`grant create on schema public to hurried`,
      sql`alter role hurried set statement_timeout = 1`,
    );

    await migrateDatabase(hurried);
  });

  it('a server that says nothing -> rejects', async () => {
    const wire = await openWire(Number(new URL(url).port));
    onTestFinished(() => wire.close());
    wire.freeze();
    const silent = new URL(url);
    silent.port = String(wire.port);
    const migrating = migrateDatabase(silent.href, { connectTimeoutMs: 100 });
    await expect(migrating).rejects.toEqual(code('CONNECT_TIMEOUT'));
  });
});

describe('the migrations', () => {
  it('their statements -> name no schema, so that search_path chooses it', () => {
    const folder = fileURLToPath(new URL('../../../db/migrations', import.meta.url));
    const files = readdirSync(folder).filter((name) => name.endsWith('.sql'));
    expect(files.length).toBeGreaterThan(1);
    for (const file of files) expect(readFileSync(join(folder, file), 'utf8')).not.toMatch(/"?public"?\./);
  });

  it('a dump, which is restored with an empty search_path -> has all of the schema', async () => {
    await migrateDatabase(url);
    const restored = await addRole(
      'restorer',
      sql`grant pg_read_all_data, pg_write_all_data to restorer`,
      sql`alter role restorer set search_path = ''`,
    );
    const insert = sql`insert into public.posts (id, content, author, tags, slug, status)
      values (gen_random_uuid(), ${'a well-known queue'}, 'ada', '{}', 'a', 'draft') returning search::text`;
    const [row] = await open(restored).run((db) => db.execute(insert));
    expect(row?.search).toBe("'known':4B 'queue':5B 'well':3B 'well-known':2B");
  });
});
