import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { createTokenStore } from '../../../db/access/tokens.js';
import { createUserStore } from '../../../db/access/users.js';
import { listAudit } from '../../../db/audit.js';
import { sql } from '../../../db/database/drizzle.js';
import type {
  AuditPage,
  NewToken,
  TokenPage,
  UserPage,
  UserSecret,
} from '../../../shared/contracts/accounts.js';
import { digestOf, isAccessToken } from '../../../shared/credential-forms.js';
import { startApp } from '../../support/app.js';
import { openTestDatabase } from '../../support/database.js';

const opened = await openTestDatabase();
const { database } = opened;
const users = createUserStore(database);
const tokens = createTokenStore(database);
/** The users of the environment. */
const variables = {
  ...{ CHAT_USERNAME: 'demo', CHAT_PASSWORD: 'a password for the tests' },
  ...{ ADMIN_USERNAME: 'root', ADMIN_PASSWORD: 'canary-of-the-secret' },
};
/** The users and the number of valid tokens at each reload of the accounts. */
let reloaded: string[];
const reloadAccounts = async () => {
  const names = (await users.list()).map(({ name }) => name);
  reloaded.push([...names, (await tokens.listActive()).length].join());
};
const app = await startApp({ opened, reloadAccounts, variables });
afterAll(app.close);
beforeEach(() => {
  reloaded = [];
  return database.run((db) => db.execute(sql`truncate users, tokens, session, audit`));
});

const ask = <Body>(request: string, body?: unknown) => {
  const [method = '', path = ''] = request.split(' ');
  return app.operate<Body>({ method, path: `/admin/${path}`, body });
};
const read = async <Body>(path: string) => (await ask<Body>(`GET ${path}`)).body;
const addUser = async (body: object) => (await ask<UserSecret>('POST users', body)).body;
const addToken = async (body: object = {}) =>
  (await ask<NewToken>('POST tokens', { owner: 'ann', scopes: ['chat'], ...body })).body;
const pathOf = (name: string) => `users/${encodeURIComponent(name)}`;
const isSecret = expect.stringMatching(/^[0-9A-Za-z]{32}$/);
const daysOf = ({ info }: NewToken) =>
  (Date.parse(info.expiresAt ?? '') - Date.parse(info.createdAt)) / 86_400_000;

it('a change of the accounts -> this process knows it before the answer, and nothing of one that failed', async () => {
  await addUser({ name: 'bob' });
  await addUser({ name: 'bob' });
  const { info } = await addToken({ owner: 'bob' });
  for (const request of [
    `DELETE tokens/${info.id}`,
    'POST users/bob/secret',
    'DELETE users/bob',
    'DELETE users/bob',
  ])
    await ask(request);
  expect(reloaded).toEqual(['bob,0', 'bob,1', 'bob,0', 'bob,0', '0']);
});

it.each<[request: string, body: unknown, pointer: string]>([
  ['POST users', {}, '/name'],
  ['POST users', { name: 'a:b' }, '/name'],
  ['POST users', { name: 'a', role: 'root' }, '/role'],
  ['POST users', { name: 'a', secret: 'chosen' }, ''],
  ['POST users', null, ''],
  ['POST tokens', { owner: 'a:b', scopes: ['chat'] }, '/owner'],
  ['POST tokens', { owner: 'ann', scopes: [] }, '/scopes'],
  ['POST tokens', { owner: 'ann', scopes: ['chat', 'root'] }, '/scopes/1'],
  ['POST tokens', { owner: 'ann', scopes: Array(5).fill('chat') }, '/scopes'],
  ['POST tokens', { owner: 'ann', scopes: ['chat'], expiresInDays: 0 }, '/expiresInDays'],
  ['POST tokens', { owner: 'ann', scopes: ['chat'], expiresInDays: 3651 }, '/expiresInDays'],
  ['POST tokens', { owner: 'ann', scopes: ['chat'], token: 'chosen' }, ''],
  ['GET users?limit=0', undefined, 'limit'],
  ['GET users?after=a%3Ab', undefined, 'after'],
  ['GET users?after=a&after=b', undefined, 'after'],
  ['GET tokens?before=x', undefined, 'before'],
  ['GET tokens?limit=x', undefined, 'limit'],
  ['GET audit?before=1', undefined, 'before'],
  ['GET audit?limit=0', undefined, 'limit'],
  ['GET audit?action=users', undefined, 'action'],
  ['GET audit?actor=%00', undefined, 'actor'],
  ['GET audit?actor=%ff', undefined, 'actor'],
  [`GET audit?target=${'x'.repeat(501)}`, undefined, 'target'],
])('%s with %j -> 400 that points at %j, and nothing is made', async (request, body, pointer) => {
  const invalid = { code: 'invalid_request', errors: [{ pointer }] };
  expect(await ask(request, body)).toMatchObject({ status: 400, body: invalid });
  expect([await users.list(), await tokens.list()]).toEqual([[], []]);
});

it.each([
  ...['nobody', '%00', 'a%3Ab', '%E0%A4%A', 'x'.repeat(129)].map((name) => `DELETE users/${name}`),
  ...['nobody', '%00', 'a%3Ab'].map((name) => `POST users/${name}/secret`),
  ...['PUT', 'DELETE'].map((method) => `${method} users/nobody/suspension`),
  ...['019a8f3e-5c71-7d2a-b3f4-0a1b2c3d4e5f', 'x', '%00'].map((id) => `DELETE tokens/${id}`),
])('%s -> 404', async (request) => {
  expect((await ask(request)).status).toBe(404);
});

it.each([
  ['POST users', { name: 'bob', role: 'admin' }, 'name_taken'],
  ['DELETE users/operator', undefined, 'own_user'],
  ['PUT users/operator/suspension', undefined, 'own_user'],
])(
  '%s, of a name that is taken or the caller’s own -> 409, and nothing changes',
  async (request, body, code) => {
    for (const name of ['bob', 'operator']) await addUser({ name });
    const before = await users.digests();
    expect(await ask(request, body)).toMatchObject({ status: 409, body: { code } });
    expect(await users.digests()).toEqual(before);
  },
);

describe('a user', () => {
  it('is suspended and resumed -> the list says so, and this process knows it before each answer', async () => {
    await addUser({ name: 'bob' });
    reloaded = [];
    const listed = async () => (await read<UserPage>('users')).data.find(({ name }) => name === 'bob');
    expect((await ask('PUT users/bob/suspension')).status).toBe(204);
    expect(await listed()).toMatchObject({ suspendedAt: expect.any(String), hasSecret: true });
    expect((await ask('DELETE users/bob/suspension')).status).toBe(204);
    expect(await listed()).not.toHaveProperty('suspendedAt');
    expect(reloaded).toHaveLength(2);
    const { data } = await read<AuditPage>('audit?target=bob&limit=2');
    expect(data.map(({ actor, action }) => [actor, action])).toEqual([
      ['operator', 'users.resume'],
      ['operator', 'users.suspend'],
    ]);
  });

  it('is added -> has a secret that is told once, kept as a digest, and is in the audit', async () => {
    const response = await ask<UserSecret>('POST users', { name: 'Zoë', role: 'admin' });
    expect([response.status, response.headers.get('cache-control')]).toEqual([201, 'no-store']);
    const { id, name, secret } = response.body;
    expect([name, secret]).toEqual(['Zoë', isSecret]);
    expect(await users.digests()).toMatchObject([{ id, name, role: 'admin', secretHash: digestOf(secret) }]);
    expect(await listAudit(database, { limit: 9 })).toMatchObject([
      { actor: 'operator', action: 'users.add', targetId: id, targetName: 'Zoë', after: { role: 'admin' } },
    ]);
    expect((await ask('GET users')).text + app.logs()).not.toContain(secret);
    await addUser({ name: 'bob' });
    expect(await users.list()).toContainEqual(expect.objectContaining({ name: 'bob', role: 'user' }));
  });

  it('gets a new secret -> it is told once, and is instead of the old one', async () => {
    const zoe = await addUser({ name: 'Zoë', role: 'admin' });
    const response = await ask<UserSecret>(`POST ${pathOf('Zoë')}/secret`);
    expect([response.status, response.headers.get('cache-control')]).toEqual([200, 'no-store']);
    const { id, secret } = response.body;
    expect([id, secret]).toEqual([zoe.id, isSecret]);
    expect(secret).not.toBe(zoe.secret);
    expect(await users.digests()).toMatchObject([{ id, secretHash: digestOf(secret) }]);
    expect(await listAudit(database, { limit: 1 })).toMatchObject([
      { actor: 'operator', action: 'users.reset', targetName: 'Zoë' },
    ]);
  });

  it('is removed -> with all tokens', async () => {
    await addUser({ name: 'a/b ü' });
    await addToken({ owner: 'a/b ü' });
    expect(await ask(`DELETE ${pathOf('a/b ü')}`)).toMatchObject({ status: 204, text: '' });
    expect(await users.list()).toEqual([]);
    expect(await tokens.list()).toMatchObject([{ revokedAt: expect.any(String) }]);
    expect(await listAudit(database, { limit: 2 })).toMatchObject([
      { actor: 'operator' },
      { actor: 'operator' },
    ]);
  });

  it('is on a page -> by name, after those of the environment, who have secrets', async () => {
    await addToken({ owner: 'demo' });
    for (const name of ['c', 'a', 'b']) await addUser({ name });
    const namesOf = ({ data }: UserPage) => data.map(({ name }) => name);
    const first = await read<UserPage>('users?limit=2');
    expect(first.data.slice(0, 2)).toMatchObject([
      { name: 'root', role: 'admin', hasSecret: true, source: 'environment' },
      { name: 'demo', role: 'user', hasSecret: true, source: 'both' },
    ]);
    expect([namesOf(first).slice(2), first.next]).toEqual([['a', 'b'], 'b']);
    const rest = await read<UserPage>('users?limit=2&after=b');
    expect([namesOf(rest), rest.next]).toEqual([['c'], null]);
    expect((await read<UserPage>('users?limit=3&after=b')).next).toBeNull();
  });
});

describe('a token', () => {
  it('is made -> it is told once, kept as a digest, and is in the audit', async () => {
    const body = { owner: 'ann', scopes: ['chat', 'blogs:write', 'chat'], expiresInDays: 1 };
    const response = await ask<NewToken>('POST tokens', body);
    expect([response.status, response.headers.get('cache-control')]).toEqual([201, 'no-store']);
    const made = response.body;
    expect(isAccessToken(made.token)).toBe(true);
    expect(made.info).toMatchObject({ owner: 'ann', scopes: ['blogs:write', 'chat'], revokedAt: null });
    const { id } = made.info;
    expect(await tokens.find(digestOf(made.token))).toMatchObject({ id, user: { name: 'ann' } });
    const [entry] = await listAudit(database, { limit: 9 });
    expect(entry).toMatchObject({
      ...{ actor: 'operator', action: 'tokens.create', targetId: id, targetName: 'ann' },
      after: { scopes: ['blogs:write', 'chat'], expiresAt: expect.stringContaining('T') },
    });
    expect((await ask('GET tokens')).text + app.logs()).not.toContain(made.token);
    expect(daysOf(made)).toBeCloseTo(1, 3);
    expect(daysOf(await addToken())).toBeCloseTo(90, 3);
    expect((await addToken({ expiresInDays: null })).info.expiresAt).toBeNull();
  });

  it('has the scope admin -> needs an operator, of the database or of the environment', async () => {
    const asked = (owner: string) => ask('POST tokens', { owner, scopes: ['chat', 'admin'] });
    await users.add({ name: 'ann', role: 'admin', secretHash: digestOf('x') });
    await users.add({ name: 'bob', secretHash: digestOf('y') });
    for (const owner of ['ann', 'root']) expect((await asked(owner)).status, owner).toBe(201);
    for (const owner of ['bob', 'demo', 'nobody']) {
      const error = { pointer: '/owner', detail: expect.stringContaining('role admin') };
      expect(await asked(owner)).toMatchObject({ status: 400, body: { errors: [error] } });
    }
    expect((await users.list()).map(({ name }) => name)).toEqual(['ann', 'bob', 'root']);
  });

  it('is revoked, and revoked again -> 204 both times, and it is in the audit once', async () => {
    const { token, info } = await addToken();
    for (const _ of [1, 2]) expect((await ask(`DELETE tokens/${info.id}`)).status).toBe(204);
    expect(await tokens.find(digestOf(token))).toBeUndefined();
    expect(await listAudit(database, { limit: 9, action: 'tokens.revoke' })).toMatchObject([
      { actor: 'operator', targetId: info.id },
    ]);
  });

  it('is on a page -> the newest first', async () => {
    const ids: string[] = [];
    for (const _ of [1, 2, 3]) ids.unshift((await addToken()).info.id);
    const first = await read<TokenPage>('tokens?limit=2');
    expect([first.data.map(({ id }) => id), first.next]).toEqual([ids.slice(0, 2), ids[1]]);
    const rest = await read<TokenPage>(`tokens?before=${first.next}`);
    expect([rest.data.map(({ id }) => id), rest.next]).toEqual([ids.slice(2), null]);
  });
});

describe('the audit', () => {
  const add = (name: string, actor = 'ann') =>
    createUserStore(database, actor).add({ name, secretHash: Buffer.from('x') });
  const namesIn = ({ data }: AuditPage) => data.map(({ targetName }) => targetName);

  it('has several pages -> the newest first, to the microsecond', async () => {
    for (const name of ['a', 'b', 'c', 'd']) await add(name);
    // Within one millisecond, and two of them at once: JavaScript could not tell them apart.
    const time = `'2026-11-21 10:00:00.00000' || case target_name when 'a' then 1 when 'd' then 3 else 2 end`;
    await database.run((db) => db.execute(sql`update audit set at = (${sql.raw(time)})::timestamptz`));
    const names: string[] = [];
    let before = '';
    for (let page = await read<AuditPage>('audit?limit=1'); ; ) {
      names.push(...namesIn(page));
      if (page.next === null) break;
      before = page.next;
      page = await read<AuditPage>(`audit?limit=1&before=${before}`);
    }
    expect([names[0], names.slice(1, 3).sort(), names.slice(3)]).toEqual(['d', ['b', 'c'], ['a']]);
    expect((await read<AuditPage>('audit?limit=4')).next).toBeNull();
    const gone = await read('audit?before=019a8f3e-5c71-7d2a-b3f4-0a1b2c3d4e5f');
    expect(gone).toEqual({ data: [], next: null });
  });

  it('is asked for what one did, what was done to one, or in one way -> that alone', async () => {
    await add('a', 'ann');
    await add('b', 'bob');
    await createUserStore(database, 'bob').remove('a');
    for (const [query, names] of [
      ['actor=ann', ['a']],
      ['target=b', ['b']],
      ['actor=bob&action=users.remove', ['a']],
      ['actor=', []],
    ] as const)
      expect(namesIn(await read<AuditPage>(`audit?${query}`)), query).toEqual(names);
    expect((await read<AuditPage>('audit')).data[0]).toMatchObject({
      ...{ id: expect.any(String), at: expect.stringMatching(/Z$/), actor: 'bob' },
      ...{ action: 'users.remove', targetName: 'a' },
    });
  });
});
