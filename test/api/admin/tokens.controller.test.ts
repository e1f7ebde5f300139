import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createTokenStore } from '../../../db/access/tokens.js';
import { createUserStore } from '../../../db/access/users.js';
import { listAudit } from '../../../db/audit.js';
import { sql } from '../../../db/database/drizzle.js';
import { digestOf, isAccessToken } from '../../../shared/access-token.js';
import type { NewToken, TokenPage } from '../../../shared/accounts.js';
import { type ChatApp, startChatApp } from '../../support/chat-app.js';
import { openTestDatabase } from '../../support/database.js';
import { asOperator } from '../../support/operator-client.js';

const { database, stop } = await openTestDatabase();
const tokens = createTokenStore(database);
let app: ChatApp;
/** The number of valid tokens at each reload of the accounts. */
let reloaded: number[];
beforeAll(async () => {
  const reloadAccounts = async () => void reloaded.push((await tokens.listActive()).length);
  const variables = { ADMIN_USERNAME: 'root', ADMIN_PASSWORD: 'canary-of-the-secret' };
  app = await startChatApp({ adminDatabase: database, reloadAccounts, variables });
});
afterAll(async () => {
  await app.close();
  await stop();
});
beforeEach(() => {
  reloaded = [];
  return database.run((db) => db.execute(sql`truncate users, tokens, audit`));
});

const ask = (method: string, path = '', body?: unknown) =>
  asOperator(app, { method, path: `/admin/tokens${path}`, body });
const create = async (body: object = {}) =>
  (await (await ask('POST', '', { owner: 'ann', scopes: ['chat'], ...body })).json()) as NewToken;
const daysOf = ({ info }: NewToken) =>
  (Date.parse(info.expiresAt ?? '') - Date.parse(info.createdAt)) / 86_400_000;

it('has the process know each change before it answers', async () => {
  const { info } = await create();
  expect(reloaded).toEqual([1]);
  await ask('DELETE', `/${info.id}`);
  expect(reloaded).toEqual([1, 0]);
});

describe('POST /admin/tokens', () => {
  it('gives the token once, keeps its digest, and says in the audit who it was', async () => {
    const body = { owner: 'ann', scopes: ['chat', 'blogs:write', 'chat'], expiresInDays: 1 };
    const response = await ask('POST', '', body);
    expect([response.status, response.headers.get('cache-control')]).toEqual([201, 'no-store']);
    const made = (await response.json()) as NewToken;
    expect(isAccessToken(made.token)).toBe(true);
    expect(made.info).toMatchObject({ owner: 'ann', scopes: ['blogs:write', 'chat'], revokedAt: null });
    expect(daysOf(made)).toBeCloseTo(1, 3);
    expect(await tokens.find(digestOf(made.token))).toMatchObject({
      id: made.info.id,
      user: { name: 'ann' },
    });
    const [entry] = await listAudit(database, { limit: 9 });
    expect(entry).toMatchObject({
      ...{ actor: 'operator', action: 'tokens.create', targetId: made.info.id, targetName: 'ann' },
      after: { scopes: ['blogs:write', 'chat'], expiresAt: expect.stringContaining('T') },
    });
    const listed = await (await ask('GET')).text();
    expect(listed + app.logs()).not.toContain(made.token);
  });

  it('is good for 90 days, or without an end, unless it says otherwise', async () => {
    expect(daysOf(await create())).toBeCloseTo(90, 3);
    expect((await create({ expiresInDays: null })).info.expiresAt).toBeNull();
  });

  it.each([
    [{ owner: 'a:b', scopes: ['chat'] }, '/owner'],
    [{ owner: 'ann', scopes: [] }, '/scopes'],
    [{ owner: 'ann', scopes: ['chat', 'root'] }, '/scopes/1'],
    [{ owner: 'ann', scopes: Array(5).fill('chat') }, '/scopes'],
    [{ owner: 'ann', scopes: ['chat'], expiresInDays: 0 }, '/expiresInDays'],
    [{ owner: 'ann', scopes: ['chat'], expiresInDays: 3651 }, '/expiresInDays'],
    [{ owner: 'ann', scopes: ['chat'], token: 'chosen' }, ''],
  ])('is 400 with a pointer for %j', async (body, pointer) => {
    const response = await ask('POST', '', body);
    expect([response.status, await response.json()]).toMatchObject([400, { errors: [{ pointer }] }]);
    expect(await tokens.list()).toEqual([]);
  });
});

describe('a token with the scope admin', () => {
  const asked = (owner: string) => ask('POST', '', { owner, scopes: ['chat', 'admin'] });

  it('needs an operator, of the database or of the environment', async () => {
    const users = createUserStore(database);
    await users.add({ name: 'ann', role: 'admin', secretHash: digestOf('x') });
    await users.add({ name: 'demo', secretHash: digestOf('y') });
    for (const owner of ['ann', 'root']) expect((await asked(owner)).status, owner).toBe(201);
    for (const owner of ['demo', 'nobody']) {
      const response = await asked(owner);
      expect([response.status, await response.json()]).toMatchObject([
        400,
        { errors: [{ pointer: '/owner', detail: expect.stringContaining('role admin') }] },
      ]);
    }
    expect((await users.list()).map(({ name }) => name)).toEqual(['ann', 'demo', 'root']);
  });
});

describe('GET /admin/tokens', () => {
  it('has one page after the other, newest first', async () => {
    const ids: string[] = [];
    for (const _ of [1, 2, 3]) ids.unshift((await create()).info.id);
    const read = async (query: string) => (await (await ask('GET', query)).json()) as TokenPage;
    const first = await read('?limit=2');
    expect([first.data.map(({ id }) => id), first.next]).toEqual([ids.slice(0, 2), ids[1]]);
    const rest = await read(`?before=${first.next}`);
    expect([rest.data.map(({ id }) => id), rest.next]).toEqual([ids.slice(2), null]);
  });

  it.each(['?before=x', '?limit=x'])('is 400 for %s', async (query) => {
    expect((await ask('GET', query)).status).toBe(400);
  });
});

describe('DELETE /admin/tokens/{id}', () => {
  it('revokes the token, and says so again', async () => {
    const { token, info } = await create();
    for (const _ of [1, 2]) expect((await ask('DELETE', `/${info.id}`)).status).toBe(204);
    expect(await tokens.find(digestOf(token))).toBeUndefined();
    expect(await listAudit(database, { limit: 9, action: 'tokens.revoke' })).toMatchObject([
      { actor: 'operator', targetId: info.id },
    ]);
  });

  it.each(['019a8f3e-5c71-7d2a-b3f4-0a1b2c3d4e5f', 'x', '%00'])('is 404 for %s', async (id) => {
    expect((await ask('DELETE', `/${id}`)).status).toBe(404);
  });
});
