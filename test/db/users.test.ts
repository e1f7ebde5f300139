import postgres from 'postgres';
import { afterAll, describe, expect, it } from 'vitest';
import { createTokenStore } from '../../db/tokens.js';
import { createUserStore, usersChannel } from '../../db/users.js';
import { digestOf, makeAccessToken } from '../../shared/access-token.js';
import { openTestDatabase } from '../support/database.js';

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

const tokensOf = async (owner: string) =>
  (await createTokenStore(database).list()).filter((token) => token.owner === owner);

const createToken = (owner: string) =>
  createTokenStore(database).create({
    owner,
    scopes: ['chat'],
    expiresAt: undefined,
    secretHash: digestOf(makeAccessToken()),
  });

describe('createUserStore', () => {
  it('keeps users by name, with the digest of their secret', async () => {
    expect(await users.add('Zoë "🎉"; drop table users', digestOf('a'))).toBe(true);
    expect(await users.add('alice', digestOf('b'))).toBe(true);
    expect(await users.list()).toEqual([
      { name: 'Zoë "🎉"; drop table users', createdAt: expect.stringMatching(/^\d{4}-.*\.\d{3}Z$/) },
      { name: 'alice', createdAt: expect.any(String) },
    ]);
    const digests = await users.digests();
    expect(digests).toHaveLength(2);
    expect(digests).toContainEqual({ name: 'alice', secretHash: digestOf('b') });
  });

  it('does not touch a user who exists', async () => {
    await users.add('bob', digestOf('a'));
    expect(await users.add('bob', digestOf('b'))).toBe(false);
    expect(await users.digests()).toContainEqual({ name: 'bob', secretHash: digestOf('a') });
  });

  it('adds one of two at once', async () => {
    const added = await Promise.all([1, 2, 3, 4].map(() => users.add('carol', digestOf('a'))));
    expect(added.filter(Boolean)).toHaveLength(1);
  });

  it('revokes the tokens of a user who is removed, and no others', async () => {
    await users.add('dave', digestOf('a'));
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
  });

  it('changes nothing when there is no such user', async () => {
    await createToken('frank');
    expect(await users.remove('frank')).toEqual({ removed: false, tokensRevoked: 0 });
    expect(await tokensOf('frank')).toMatchObject([{ revokedAt: null }]);
  });

  it('tells every change once, and nothing else', async () => {
    expect(await notificationsOf(() => users.add('grace', digestOf('a')))).toBe(1);
    expect(await notificationsOf(() => users.add('grace', digestOf('a')))).toBe(0);
    expect(await notificationsOf(() => users.list())).toBe(0);
    expect(await notificationsOf(() => users.remove('grace'))).toBe(1);
    expect(await notificationsOf(() => users.remove('grace'))).toBe(0);
  });
});
