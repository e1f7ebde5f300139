import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createTokenStore } from '../../../db/access/tokens.js';
import { createUserStore } from '../../../db/access/users.js';
import { listAudit } from '../../../db/audit.js';
import { sql } from '../../../db/database/drizzle.js';
import { digestOf, makeAccessToken } from '../../../shared/access-token.js';
import type { UserPage, UserSecret } from '../../../shared/accounts.js';
import { type ChatApp, startChatApp } from '../../support/chat-app.js';
import { openTestDatabase } from '../../support/database.js';
import { asOperator } from '../../support/operator-client.js';

const { database, stop } = await openTestDatabase();
const users = createUserStore(database);
let app: ChatApp;
/** The names of the users at each reload of the accounts. */
let reloaded: string[][];
beforeAll(async () => {
  const reloadAccounts = async () => void reloaded.push((await users.list()).map(({ name }) => name));
  app = await startChatApp({ adminDatabase: database, reloadAccounts });
});
afterAll(async () => {
  await app.close();
  await stop();
});
beforeEach(() => {
  reloaded = [];
  return database.run((db) => db.execute(sql`truncate users, tokens, session, audit`));
});

const ask = (method: string, path = '', body?: unknown) =>
  asOperator(app, { method, path: `/admin/users${path}`, body });
const create = async (body: object) => (await (await ask('POST', '', body)).json()) as UserSecret;

it('has the process know each change before it answers', async () => {
  await create({ name: 'bob' });
  expect(reloaded).toEqual([['bob']]);
  await ask('POST', '', { name: 'bob' });
  await ask('POST', '/bob/secret');
  expect(reloaded).toEqual([['bob'], ['bob']]);
  await ask('DELETE', '/bob');
  await ask('DELETE', '/bob');
  expect(reloaded).toEqual([['bob'], ['bob'], []]);
});

describe('POST /admin/users', () => {
  it('gives the secret once, keeps its digest, and says in the audit who it was', async () => {
    const response = await ask('POST', '', { name: 'Zoë', role: 'admin' });
    expect([response.status, response.headers.get('cache-control')]).toEqual([201, 'no-store']);
    const { id, name, secret } = (await response.json()) as UserSecret;
    expect([name, secret]).toEqual(['Zoë', expect.stringMatching(/^[0-9A-Za-z]{32}$/)]);
    expect(await users.digests()).toMatchObject([{ id, name, secretHash: digestOf(secret) }]);
    expect(await users.list()).toMatchObject([{ id, role: 'admin' }]);
    expect(await listAudit(database, { limit: 9 })).toMatchObject([
      { actor: 'operator', action: 'users.add', targetId: id, targetName: 'Zoë', after: { role: 'admin' } },
    ]);
    expect(await (await ask('GET')).text()).not.toContain(secret);
    expect(app.logs()).not.toContain(secret);
  });

  it('makes no operator of whom nobody calls one', async () => {
    await create({ name: 'bob' });
    expect(await users.list()).toMatchObject([{ name: 'bob', role: 'user' }]);
  });

  it('is 409 for a name that somebody has, who keeps the secret', async () => {
    const { secret } = await create({ name: 'bob' });
    const response = await ask('POST', '', { name: 'bob', role: 'admin' });
    expect([response.status, await response.json()]).toMatchObject([409, { code: 'name_taken' }]);
    expect(await users.digests()).toMatchObject([{ secretHash: digestOf(secret) }]);
    expect(await users.list()).toMatchObject([{ role: 'user' }]);
  });

  it.each([
    [{}, '/name'],
    [{ name: 'a:b' }, '/name'],
    [{ name: 'a', role: 'root' }, '/role'],
    [{ name: 'a', secret: 'chosen' }, ''],
    [null, ''],
  ])('is 400 with a pointer for %j', async (body, pointer) => {
    const response = await ask('POST', '', body);
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ code: 'invalid_request', errors: [{ pointer }] });
    expect(await users.list()).toEqual([]);
  });
});

describe('GET /admin/users', () => {
  it('has one page after the other, by name', async () => {
    for (const name of ['c', 'a', 'b']) await create({ name });
    const read = async (query: string) => (await (await ask('GET', query)).json()) as UserPage;
    const first = await read('?limit=2');
    expect([first.data.map(({ name }) => name), first.next]).toEqual([['a', 'b'], 'b']);
    const rest = await read(`?limit=2&after=${first.next}`);
    expect([rest.data.map(({ name }) => name), rest.next]).toEqual([['c'], null]);
    expect((await read('?limit=3')).next).toBeNull();
  });

  it('begins with the users of the environment, who have secrets', async () => {
    const variables = {
      ...{ CHAT_USERNAME: 'demo', CHAT_PASSWORD: 'a password for the tests' },
      ...{ ADMIN_USERNAME: 'ada', ADMIN_PASSWORD: 'another password for the tests' },
    };
    const other = await startChatApp({ adminDatabase: database, variables });
    try {
      await createTokenStore(database).create({
        ...{ owner: 'demo', scopes: ['chat'], expiresAt: undefined, secretHash: digestOf('a token') },
      });
      await create({ name: 'bob' });
      const read = async (path: string) =>
        (await (await asOperator(other, { method: 'GET', path })).json()) as UserPage;
      const { data, next } = await read('/admin/users?limit=1');
      expect(data).toMatchObject([
        { name: 'ada', role: 'admin', hasSecret: true, source: 'environment' },
        { name: 'demo', role: 'user', hasSecret: true, source: 'both' },
        { name: 'bob' },
      ]);
      expect((await read(`/admin/users?limit=1&after=${next}`)).data).toEqual([]);
    } finally {
      await other.close();
    }
  });

  it.each([
    ['?limit=0', 'limit'],
    ['?after=a%3Ab', 'after'],
    ['?after=a&after=b', 'after'],
  ])('is 400 for %s', async (query, pointer) => {
    const response = await ask('GET', query);
    expect([response.status, await response.json()]).toMatchObject([400, { errors: [{ pointer }] }]);
  });
});

describe('DELETE /admin/users/{name}', () => {
  it('removes the user with all tokens', async () => {
    await create({ name: 'a/b ü' });
    const secretHash = digestOf(makeAccessToken());
    const tokens = createTokenStore(database);
    await tokens.create({ owner: 'a/b ü', scopes: ['chat'], expiresAt: undefined, secretHash });
    const response = await ask('DELETE', `/${encodeURIComponent('a/b ü')}`);
    expect([response.status, await response.text()]).toEqual([204, '']);
    expect(await users.list()).toEqual([]);
    expect(await tokens.list()).toMatchObject([{ revokedAt: expect.any(String) }]);
    expect(await listAudit(database, { limit: 2 })).toMatchObject([
      { actor: 'operator' },
      { actor: 'operator' },
    ]);
  });

  it.each(['nobody', '%00', 'a%3Ab', '%E0%A4%A', 'x'.repeat(129)])('is 404 for %s', async (name) => {
    expect((await ask('DELETE', `/${name}`)).status).toBe(404);
  });

  it('is 409 for the caller’s own user, who stays', async () => {
    await create({ name: 'operator', role: 'admin' });
    const response = await ask('DELETE', '/operator');
    expect([response.status, await response.json()]).toMatchObject([409, { code: 'own_user' }]);
    expect(await users.list()).toMatchObject([{ name: 'operator' }]);
  });
});

describe('POST /admin/users/{name}/secret', () => {
  it('gives a new secret once, instead of the old one', async () => {
    const zoe = await create({ name: 'Zoë', role: 'admin' });
    const response = await ask('POST', `/${encodeURIComponent('Zoë')}/secret`);
    expect([response.status, response.headers.get('cache-control')]).toEqual([200, 'no-store']);
    const { id, secret } = (await response.json()) as UserSecret;
    expect([id, secret === zoe.secret]).toEqual([zoe.id, false]);
    expect(await users.digests()).toMatchObject([{ id, secretHash: digestOf(secret) }]);
    expect(await listAudit(database, { limit: 1 })).toMatchObject([
      { actor: 'operator', action: 'users.reset', targetName: 'Zoë' },
    ]);
  });

  it.each(['nobody', '%00', 'a%3Ab'])('is 404 for %s', async (name) => {
    expect((await ask('POST', `/${name}/secret`)).status).toBe(404);
  });
});
