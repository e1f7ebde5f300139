import { afterAll, describe, expect, it } from 'vitest';
import { createTokenStore, type NewToken } from '../../../db/access/tokens.js';
import { eq, sql } from '../../../db/database/drizzle.js';
import { tokens as table } from '../../../db/schema.js';
import { digestOf, makeAccessToken } from '../../../shared/credential-forms.js';
import { openTestDatabase } from '../../support/database.js';

const { database, stop } = await openTestDatabase();
afterAll(stop);
const tokens = createTokenStore(database);

async function create(facts: Partial<NewToken> = {}) {
  const secretHash = digestOf(makeAccessToken());
  const info = await tokens.create({
    owner: 'Zoë',
    scopes: ['blogs:read'],
    expiresAt: undefined,
    secretHash,
    ...facts,
  });
  return { info, secretHash };
}

const infoOf = async (id: string) => (await tokens.list()).find((info) => info.id === id);

const soon = () => new Date(Date.now() + 3_600_000);

describe('the store of tokens', () => {
  it('is given a token -> keeps its digest alone', async () => {
    const expiresAt = soon();
    const { info, secretHash } = await create({ scopes: ['chat', 'admin'], expiresAt });
    expect(info).toEqual({
      id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7/),
      owner: 'Zoë',
      scopes: ['chat', 'admin'],
      createdAt: expect.stringMatching(/^\d{4}-.*\.\d{3}Z$/),
      expiresAt: expiresAt.toISOString(),
      lastUsedAt: null,
      revokedAt: null,
    });
    expect(await infoOf(info.id)).toEqual(info);
    expect(await tokens.find(secretHash)).toEqual({
      id: info.id,
      secretHash,
      user: { id: expect.stringMatching(/^[0-9a-f-]{36}$/), name: 'Zoë', createdAt: expect.any(Date) },
      scopes: ['chat', 'admin'],
      expiresInMs: expect.any(Number),
    });
  });

  it('is asked for tokens -> finds those that have not expired', async () => {
    const { secretHash: lasting } = await create();
    const { secretHash: expired } = await create({ expiresAt: new Date(Date.now() - 1) });
    const { info, secretHash: ending } = await create({ expiresAt: soon() });
    // By the clock of the database.
    await database.run((db) => db.update(table).set({ expiresAt: sql`now()` }).where(eq(table.id, info.id)));
    expect(await tokens.find(lasting)).toBeDefined();
    expect(await tokens.find(ending)).toBeUndefined();
    expect(await tokens.find(expired)).toBeUndefined();
    expect(await tokens.find(digestOf(''))).toBeUndefined();
  });

  it('is asked for the active ones -> with how much longer they are, by the clock of the database', async () => {
    const { info: lasting, secretHash } = await create({ owner: 'Ida', scopes: ['chat'] });
    const { info: ending } = await create({ expiresAt: soon() });
    const { info: expired } = await create({ expiresAt: new Date(Date.now() - 1) });
    const { info: revoked } = await create();
    await tokens.revoke(revoked.id);
    const active = new Map((await tokens.listActive()).map((token) => [token.id, token]));
    expect(active.get(lasting.id)).toEqual({
      id: lasting.id,
      secretHash,
      user: { id: expect.any(String), name: 'Ida', createdAt: expect.any(Date) },
      scopes: ['chat'],
      expiresInMs: null,
    });
    expect(active.get(ending.id)?.expiresInMs).toBeGreaterThan(0);
    expect(active.get(ending.id)?.expiresInMs).toBeLessThanOrEqual(3_600_000);
    expect([expired, revoked].filter(({ id }) => active.has(id))).toEqual([]);
  });

  it('has a token revoked -> finds it no more, and keeps the time of the first', async () => {
    const { info, secretHash } = await create();
    expect(await tokens.revoke(info.id)).toBe(true);
    expect(await tokens.find(secretHash)).toBeUndefined();
    const revoked = await infoOf(info.id);
    expect(revoked?.revokedAt).toEqual(expect.any(String));
    expect(await tokens.revoke(info.id)).toBe(true);
    expect(await infoOf(info.id)).toEqual(revoked);
  });

  it('is given an id that is not there or none -> revokes nothing', async () => {
    for (const id of ['00000000-0000-7000-8000-000000000000', '', 'x', "'; drop table tokens", '\0'])
      expect(await tokens.revoke(id)).toBe(false);
  });

  it('is told of uses -> notes one a minute', async () => {
    const { info } = await create();
    const lastUse = async () => (await infoOf(info.id))?.lastUsedAt;
    await tokens.markUsed(info.id);
    const used = await lastUse();
    expect(used).toEqual(expect.any(String));
    await tokens.markUsed(info.id);
    expect(await lastUse()).toBe(used);

    const longAgo = new Date('2020-01-01T00:00:00Z');
    await database.run((db) => db.update(table).set({ lastUsedAt: longAgo }).where(eq(table.id, info.id)));
    await tokens.markUsed(info.id);
    expect(await lastUse()).not.toBe(longAgo.toISOString());
  });

  it('is asked for all -> the oldest first, whatever became of them', async () => {
    const { info: older } = await create({ expiresAt: new Date(0) });
    const { info: newer } = await create();
    await tokens.revoke(older.id);
    const ids = (await tokens.list()).map(({ id }) => id);
    expect(ids.slice(-2)).toEqual([older.id, newer.id]);
  });
});
