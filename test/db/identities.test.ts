import { readFileSync } from 'node:fs';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTokenStore } from '../../db/access/tokens.js';
import { createUserStore } from '../../db/access/users.js';
import { type Database, openDatabase } from '../../db/database/client.js';
import { migrateDatabase } from '../../db/database/migrate.js';
import { digestOf } from '../../shared/credential-forms.js';
import { startEmptyDatabase } from '../support/database.js';
import { createRecordingLog } from '../support/recording-log.js';

// A database as release 0.1.0 has left it, whose statements are written out here, and then migrated.

let stop: () => Promise<void>;
let database: Database;
let older: postgres.Sql;

const olderMigrations = [
  { tag: '0000_search-vector', when: 1795218937209 },
  { tag: '0001_posts-users-tokens', when: 1795218950063 },
];

const olderUser = (name: string) =>
  older`insert into users (name, secret_hash) values (${name}, ${digestOf(name)}) on conflict do nothing`;
const olderToken = (owner: string, secret: string, revokedAt: Date | null = null) => older`
  insert into tokens (id, secret_hash, owner, scopes, revoked_at)
  values (gen_random_uuid(), ${digestOf(secret)}, ${owner}, '{blogs:write}', ${revokedAt})`;

beforeAll(async () => {
  const server = await startEmptyDatabase();
  older = postgres(server.url, { max: 2, onnotice: () => undefined });
  await older`create table quillgate_migrations (created_at bigint primary key, hash text not null)`;
  for (const { tag, when } of olderMigrations) {
    await older.unsafe(readFileSync(`db/migrations/${tag}.sql`, 'utf8'));
    await older`insert into quillgate_migrations (created_at, hash) values (${when}, '')`;
  }
  await olderUser('alice');
  await olderToken('alice', 'of alice');
  await olderToken('blog', 'of blog');
  await olderToken('blog', 'another of blog');
  await olderToken('gone', 'of gone', new Date());
  await migrateDatabase(server.url);
  database = openDatabase({ url: server.url, poolSize: 2, log: createRecordingLog().log });
  stop = async () => {
    await database.close();
    await older.end();
    await server.stop();
  };
});
afterAll(() => stop?.());

const userOf = async (token: string) => (await createTokenStore(database).find(digestOf(token)))?.user;
const userNamed = async (name: string) =>
  (await createUserStore(database).list()).find((user) => user.name === name);

describe('the migration to users with ids', () => {
  it('keeps users and their secrets, and gives them ids', async () => {
    expect(await userNamed('alice')).toMatchObject({ role: 'user', hasSecret: true });
    const digests = await createUserStore(database).digests();
    expect(digests.find(({ name }) => name === 'alice')?.secretHash).toEqual(digestOf('alice'));
  });

  it('keeps every token that works, and gives it to the user of its name', async () => {
    expect(await userOf('of alice')).toMatchObject({ id: (await userNamed('alice'))?.id, name: 'alice' });
    const blog = await userNamed('blog');
    expect(blog).toMatchObject({ role: 'user', hasSecret: false });
    for (const token of ['of blog', 'another of blog'])
      expect(await userOf(token)).toMatchObject({ id: blog?.id, name: 'blog' });
  });

  it('makes nobody of a token that was revoked', async () => {
    expect(await userNamed('gone')).toBeUndefined();
    expect(await userOf('of gone')).toBeUndefined();
  });
});
