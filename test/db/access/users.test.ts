import postgres from 'postgres';
import { afterAll, describe, expect, it } from 'vitest';
import { createSessionStore } from '../../../db/access/sessions.js';
import { createTokenStore, isActiveToken } from '../../../db/access/tokens.js';
import { auditCancel, createUserStore, firstUserOf, usersChannel } from '../../../db/access/users.js';
import { listAudit } from '../../../db/audit.js';
import { sql } from '../../../db/database/drizzle.js';
import { digestOf, makeAccessToken } from '../../../shared/credential-forms.js';
import { openTestDatabase } from '../../support/database.js';

const { database, url, stop } = await openTestDatabase();
const users = createUserStore(database);
const listener = postgres(url, { max: 1 });
afterAll(async () => {
  await listener.end();
  await stop();
});

/** How often the work told of a change. Notifications come in the order of the changes, so the last one ends them. */
async function notificationsOf(work: () => Promise<unknown>): Promise<number> {
  const last = Promise.withResolvers<void>();
  const payloads: string[] = [];
  const { unlisten } = await listener.listen(usersChannel, (payload) => {
    if (payload === 'last') last.resolve();
    else payloads.push(payload);
  });
  await work();
  await listener.notify(usersChannel, 'last');
  await last.promise;
  await unlisten();
  return payloads.length;
}

const add = (name: string, secret: string) => users.add({ name, secretHash: digestOf(secret) });

const tokensOf = async (owner: string) =>
  (await createTokenStore(database).list()).filter((token) => token.owner === owner);

const createToken = (owner: string) =>
  createTokenStore(database).create({
    owner,
    scopes: ['chat'],
    expiresAt: undefined,
    secretHash: digestOf(makeAccessToken()),
  });

describe('firstUserOf', () => {
  it('a name -> the same id in every release', () => {
    expect(firstUserOf('demo').id).toBe('27d48401-36c8-5ccb-bc93-146c63b80019');
    expect(firstUserOf('Demo').id).not.toBe(firstUserOf('demo').id);
  });
});

describe('the store of users', () => {
  it('suspends and resumes -> told and audited once each, the sessions end, and no write with the tokens', async () => {
    await add('wild', 'a');
    const { id } = await createToken('wild');
    const sessions = createSessionStore(database);
    const [digest, secretHash] = [digestOf('s'), digestOf('a')];
    await sessions.create({ digest, user: { id, name: 'wild' }, secretHash, lifetimeMs: 60_000 });
    const state = async () => {
      const rows = await database.run((db) => db.execute(sql`select 1 where ${isActiveToken(id)}`));
      const user = (await users.digests()).find(({ name }) => name === 'wild');
      return { activeTokens: rows.length, since: user?.suspendedAt };
    };
    expect(await state()).toEqual({ activeTokens: 1, since: null });
    expect(await notificationsOf(() => users.setSuspended('wild', true))).toBe(1);
    const suspended = await state();
    expect(suspended).toEqual({ activeTokens: 0, since: expect.any(Date) });
    expect(await sessions.find([digest])).toBeUndefined();
    expect(await users.setSuspended('wild', true)).toBe(true);
    expect(await state()).toEqual(suspended);
    for (const _ of [1, 2]) expect(await users.setSuspended('wild', false)).toBe(true);
    expect(await state()).toEqual({ activeTokens: 1, since: null });
    const entries = await listAudit(database, { limit: 2, target: 'wild' });
    expect(entries.map(({ action }) => action)).toEqual(['users.resume', 'users.suspend']);
    await users.remove('wild');
  });

  it('removed one of late -> that is listed for as long as it is asked', async () => {
    const before = await users.removedWithin(60_000);
    const id = await add('removed', 'a');
    await users.remove('removed');
    expect(await users.removedWithin(60_000)).toEqual([...before, id]);
    expect(await users.removedWithin(0)).toEqual([]);
  });

  it('is given users -> they are kept by name, with the digest of their secret', async () => {
    const zoe = await add('Zoë "🎉"; drop table users', 'a');
    expect(zoe).toMatch(/^[0-9a-f-]{36}$/);
    const alice = await users.add({ name: 'alice', secretHash: digestOf('b'), role: 'admin' });
    const [createdAt, hasSecret] = [expect.stringMatching(/^\d{4}-.*\.\d{3}Z$/), true];
    expect(await users.list()).toEqual([
      { id: zoe, name: 'Zoë "🎉"; drop table users', role: 'user', hasSecret, createdAt },
      { id: alice, name: 'alice', role: 'admin', hasSecret, createdAt },
    ]);
    const digests = await users.digests();
    expect(digests).toHaveLength(2);
    const secretHash = digestOf('b');
    expect(digests).toContainEqual({
      ...{ id: alice, name: 'alice', createdAt: expect.any(Date), secretHash },
      role: 'admin',
      suspendedAt: null,
    });
  });

  it('is given a name that somebody has, also at the same moment -> adds nobody', async () => {
    const added = await Promise.all([1, 2, 3, 4].map(() => add('carol', 'a')));
    expect(added.filter(Boolean)).toHaveLength(1);
    const before = await users.digests();
    expect(await add('carol', 'b')).toBeUndefined();
    expect(await users.digests()).toEqual(before);
    await users.remove('carol');
    const again = await add('carol', 'a');
    expect(again).toEqual(expect.any(String));
    expect(added).not.toContain(again);
  });

  it('is given a secret for a user who has only tokens -> who stays the same', async () => {
    await createToken('tokens alone');
    const named = async () => (await users.list()).find(({ name }) => name === 'tokens alone');
    const before = await named();
    expect(before).toMatchObject({ role: 'user', hasSecret: false });
    expect(await add('tokens alone', 'a')).toBe(before?.id);
    expect(await named()).toEqual({ ...before, hasSecret: true });
    expect(await add('tokens alone', 'b')).toBeUndefined();
  });

  it('has a user removed -> the tokens of that one are revoked, and no others', async () => {
    await add('dave', 'a');
    const before = await createToken('dave');
    await createTokenStore(database).revoke(before.id);
    const [revokedBefore] = await tokensOf('dave');
    await createToken('dave');
    await createToken('dave');
    await createToken('erin');
    expect(await users.remove('dave')).toEqual({ removed: true, tokensRevoked: 2 });
    const tokens = await tokensOf('dave');
    expect(tokens.every(({ revokedAt }) => revokedAt !== null)).toBe(true);
    expect(tokens).toContainEqual(revokedBefore);
    expect(await tokensOf('erin')).toMatchObject([{ revokedAt: null }]);
    expect((await users.list()).map(({ name }) => name)).not.toContain('dave');
    expect(await users.remove('dave')).toEqual({ removed: false, tokensRevoked: 0 });
  });

  it('has a secret replaced -> nothing else of the user changes', async () => {
    const id = await users.add({ name: 'hal', secretHash: digestOf('a'), role: 'admin' });
    const { id: token } = await createToken('hal');
    const before = await users.list();
    expect(await users.resetSecret('hal', digestOf('b'))).toBe(id);
    expect(await users.list()).toEqual(before);
    const [hal] = (await users.digests()).filter(({ name }) => name === 'hal');
    expect(hal?.secretHash).toEqual(digestOf('b'));
    expect(await tokensOf('hal')).toMatchObject([{ id: token, revokedAt: null }]);
    expect(await users.resetSecret('nobody', digestOf('b'))).toBeUndefined();
    const entries = await listAudit(database, { limit: 100 });
    expect(entries.filter(({ action }) => action === 'users.reset')).toMatchObject([
      { targetId: id, targetName: 'hal' },
    ]);
  });

  it.each(['remove', 'resetSecret'] as const)(
    "has a user changed by %s -> that user's sessions end, and no others",
    async (change) => {
      const sessions = createSessionStore(database);
      const open = (digest: Buffer, name: string) =>
        sessions.create({ digest, user: { id: crypto.randomUUID(), name }, lifetimeMs: 60_000 });
      const digests = ['one', 'two', 'other'].map((key) => digestOf(`${change} ${key}`));
      const [one = Buffer.of(), two = Buffer.of(), other = Buffer.of()] = digests;
      await add('jo', 'a');
      // Two ids: one may be that of the environment.
      await open(one, 'jo');
      await open(two, 'jo');
      await open(other, 'joe');
      const end = (name: string) =>
        change === 'remove' ? users.remove(name) : users.resetSecret(name, digestOf('b'));
      await end('joe');
      expect(await sessions.find([other])).toBeDefined();
      expect(await notificationsOf(() => end('jo'))).toBe(1);
      expect([await sessions.find([one]), await sessions.find([two])]).toEqual([undefined, undefined]);
      expect(await sessions.find([other])).toBeDefined();
      await users.remove('jo');
    },
  );

  it('has its channel notified -> once of every change of users and tokens, and of nothing else', async () => {
    const tokens = createTokenStore(database);
    const made = Promise.withResolvers<string>();
    const revoke = async () => tokens.revoke(await made.promise);
    for (const [work, times] of [
      [() => add('grace', 'a'), 1],
      [() => add('grace', 'a'), 0],
      [() => users.list(), 0],
      [() => users.remove('grace'), 1],
      [() => users.remove('grace'), 0],
      [async () => made.resolve((await createToken('Iva')).id), 1],
      [revoke, 1],
      [() => tokens.revoke(crypto.randomUUID()), 0],
    ] as const)
      expect(await notificationsOf(work), String(work)).toBe(times);
  });
});

describe('the audit of a cancelled chat', () => {
  const chat = '0191d2f0-0000-7000-8000-000000000001';
  it.each([
    ['in the database', async () => ({ user: (await add('owner', 'x')) ?? '' }), 'owner'],
    ['of the environment', async () => ({ user: 'an id', userName: 'demo' }), 'demo'],
    ['who is gone', async () => ({ user: 'an id' }), 'an id'],
  ])('of a user %s -> has the name, or else the id', async (_, of, targetName) => {
    await auditCancel(database, { actor: 'ann', id: chat, ...(await of()) });
    const [entry] = await listAudit(database, { limit: 1, action: 'chats.cancel' });
    expect(entry).toMatchObject({ actor: 'ann', targetId: chat, targetName });
  });
});
