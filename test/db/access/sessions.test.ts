import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { createSessionStore } from '../../../db/access/sessions.js';
import { createUserStore } from '../../../db/access/users.js';
import { sql } from '../../../db/database/drizzle.js';
import { digestOf } from '../../../shared/credential-forms.js';
import { openTestDatabase } from '../../support/database.js';

const { database, stop } = await openTestDatabase();
afterAll(stop);
const sessions = createSessionStore(database);
const users = createUserStore(database);
beforeEach(() => database.run((db) => db.execute(sql`truncate session, users cascade`)));

const ada = { id: '7f2b3bb3-5a0e-4f0e-8a43-8f7f6c5d4e3b', name: 'Ada "🎉"; drop table session' };
const bob = { id: '0a8f4a47-0f52-4b43-9d0e-6b4d2a2f1c11', name: 'bob' };
const hourMs = 3_600_000;
const open = (key: string, user = ada, secretHash?: Buffer) =>
  sessions.create({ digest: digestOf(key), user, secretHash, lifetimeMs: hourMs });
const find = (...keys: string[]) => sessions.find(keys.map(digestOf));
const names = async () => (await sessions.listActive()).map(({ userName }) => userName).sort();
const expire = () => database.run((db) => db.execute(sql`update session set expires_at = now()`));

describe('createSessionStore', () => {
  it('keeps a session by its digest, until its end by the clock of the database', async () => {
    const expiresAt = await open('a');
    const found = await find('another', 'a');
    expect(found).toEqual({
      ...{ digest: digestOf('a'), userId: ada.id, userName: ada.name, expiresAt, user: null },
      expiresInMs: expect.any(Number),
    });
    const [row] = await database.run((db) =>
      db.execute(sql`select extract(epoch from expires_at - created_at) * 1000 as "livesMs" from session`),
    );
    expect(Number(row?.livesMs)).toBe(hourMs);
    expect(found?.expiresInMs).toBeLessThanOrEqual(hourMs);
    expect(await sessions.listActive()).toMatchObject([{ digest: digestOf('a') }]);
    await expire();
    expect([await find('a'), await sessions.listActive()]).toEqual([undefined, []]);
  });

  it('says who has the name now, and the role', async () => {
    const id = await users.add({ name: 'bob', secretHash: digestOf('b'), role: 'admin' });
    await open('a', bob, digestOf('b'));
    expect(await find('a')).toMatchObject({ userId: bob.id, user: { id, name: 'bob', role: 'admin' } });
    expect(await sessions.listActive()).toMatchObject([{ user: { id, role: 'admin' } }]);
  });

  it('is nobody’s when it was opened with a secret that somebody has reset meanwhile', async () => {
    await users.add({ name: 'bob', secretHash: digestOf('b'), role: 'admin' });
    await users.resetSecret('bob', digestOf('new'));
    await open('a', bob, digestOf('b'));
    expect(await find('a')).toMatchObject({ user: null });
    expect(await sessions.listActive()).toMatchObject([{ user: null }]);
  });

  it('ends one, or all of a user', async () => {
    for (const key of ['a', 'b', 'c']) await open(key);
    await open('d', bob);
    await sessions.end(digestOf('b'));
    await sessions.end(digestOf('b'));
    expect([await find('b'), await find('a')]).toMatchObject([undefined, {}]);
    await sessions.endAll(ada.name);
    expect(await names()).toEqual(['bob']);
  });

  it('removes what has expired when one is opened', async () => {
    await open('a');
    await expire();
    await open('b', bob);
    const [rows] = await database.run((db) =>
      db.execute<{ n: number }>(sql`select count(*)::int n from session`),
    );
    expect(rows?.n).toBe(1);
  });

  it('keeps the latest hundred of a user, and those of others', async () => {
    await open('d', bob);
    await database.run((db) =>
      db.execute(sql`insert into session select sha256(i::text::bytea), ${ada.id}, ${ada.name},
        now() - i * interval '1 second', now() + interval '1 hour' from generate_series(1, 120) as i`),
    );
    await open('latest');
    expect(await names()).toHaveLength(101);
    expect(await find('99')).toBeDefined();
    expect(await find('100')).toBeUndefined();
    expect(await find('latest')).toBeDefined();
    expect(await find('d')).toBeDefined();
  });
});
