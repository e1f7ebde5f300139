import { hostname, userInfo } from 'node:os';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { printAudit } from '../../../cli/commands/audit.js';
import { createToken, listTokens, parseExpiry, revokeToken } from '../../../cli/commands/tokens.js';
import { addUser, listUsers, removeUser, resetUser, suspendUser } from '../../../cli/commands/users.js';
import { createTokenStore } from '../../../db/access/tokens.js';
import { createUserStore } from '../../../db/access/users.js';
import { sql } from '../../../db/database/drizzle.js';
import type { Environment } from '../../../shared/config/config.js';
import { digestOf, isAccessToken } from '../../../shared/credential-forms.js';
import { openTestDatabase } from '../../support/database.js';
import { plant } from '../../support/folders.js';
import { printedBy } from '../output.js';

const { database, url, stop } = await openTestDatabase();
afterAll(stop);
beforeEach(() => database.run((db) => db.execute(sql`truncate users, tokens, audit`)));
const users = createUserStore(database);
const tokens = createTokenStore(database);
const environment = { DATABASE_URL: url, CHAT_USERNAME: 'first', ADMIN_USERNAME: 'operator' };

/** Runs a command and gives what it printed. */
const run = (command: (...rest: never[]) => Promise<void>, ...args: unknown[]) =>
  printedBy(() => (command as (...rest: unknown[]) => Promise<void>)(environment, ...args));
const parsed = async (...args: Parameters<typeof run>) => JSON.parse((await run(...args)).stdout);

describe('a user', () => {
  it('is added -> the secret alone on standard output, and its digest is kept', async () => {
    const { stdout, stderr } = await run(addUser, 'Zoë', {});
    expect(stdout).toMatch(/^[0-9A-Za-z]{32}\n$/);
    expect(stderr).toBe('The secret of Zoë for the chat service; it is not shown again.\n');
    await expect(run(addUser, 'Zoë', {})).rejects.toThrow('There is a user Zoë already');
    const secretHash = digestOf(stdout.trim());
    expect(await users.digests()).toMatchObject([{ name: 'Zoë', role: 'user', secretHash }]);
  });

  it.each(['', 'a:b', 'a\nb', 'a\u0085b', 'x'.repeat(129)])('is to be called %j -> refused', async (name) => {
    await expect(run(addUser, name, {})).rejects.toThrow('A name has 1 to 128 characters');
  });

  it('is to have a role -> has it, and no other than those that there are', async () => {
    await run(addUser, 'Zoë', { role: 'admin' });
    expect(await users.list()).toMatchObject([{ name: 'Zoë', role: 'admin' }]);
    const unknown = run(addUser, 'Bob', { role: 'root' });
    await expect(unknown).rejects.toThrow('--role must be one of: user, admin.');
  });

  it('is listed -> with names and times, and never a secret', async () => {
    const { stdout: secret } = await run(addUser, 'Zoë', {});
    const [{ stdout }, { stdout: json }] = [await run(listUsers, {}), await run(listUsers, { json: true })];
    expect(stdout).toMatch(
      /^ID +NAME {2}ROLE {2}HAS SECRET {2}CREATED +SUSPENDED\n[0-9a-f-]{36} {2}Zoë {3}user {2}yes {9}\d{4}-\S+Z {2}-\n$/,
    );
    expect(JSON.parse(json)).toEqual(await users.list());
    expect(stdout + json).not.toContain(secret.trim());
  });

  it('is removed -> so are the tokens; of the environment it says what keeps the secret valid', async () => {
    await run(addUser, 'Zoë', {});
    await run(createToken, { owner: 'Zoë', expires: 'never' });
    expect((await run(removeUser, 'Zoë')).stdout).toBe('Removed Zoë and revoked 1 access token.\n');
    await expect(run(removeUser, 'Zoë')).rejects.toThrow('There is no such user');
    await expect(run(removeUser, 'first')).rejects.toThrow('unset CHAT_USERNAME');
    await run(addUser, 'first', {});
    const { stdout, stderr } = await run(removeUser, 'first');
    expect(stdout).toBe('Removed first and revoked 0 access tokens.\n');
    expect(stderr).toContain('unset CHAT_USERNAME');
  });

  it('is suspended and resumed -> the list has since when; of the environment alone it says what to change', async () => {
    await run(addUser, 'Zoë', {});
    const since = async () => (await users.list()).map(({ suspendedAt }) => suspendedAt);
    expect((await run(suspendUser, 'Zoë', { isSuspended: true })).stdout).toBe('Suspended Zoë.\n');
    expect(await since()).toEqual([expect.any(String)]);
    expect((await run(listUsers, {})).stdout).toMatch(/Z {2}\d{4}-\S+Z\n$/);
    expect((await run(suspendUser, 'Zoë', { isSuspended: false })).stdout).toBe('Resumed Zoë.\n');
    expect(await since()).toEqual([undefined]);
    for (const isSuspended of [true, false]) {
      await expect(run(suspendUser, 'nobody', { isSuspended })).rejects.toThrow('There is no such user');
      await expect(run(suspendUser, 'first', { isSuspended })).rejects.toThrow('unset CHAT_USERNAME');
    }
  });

  it('gets a new secret -> it is printed once, as JSON too', async () => {
    await run(addUser, 'Zoë', { role: 'admin' });
    const { stdout, stderr } = await run(resetUser, 'Zoë', {});
    expect(stdout).toMatch(/^[0-9A-Za-z]{32}\n$/);
    expect(stderr).toBe('The new secret of Zoë; it is not shown again. The old one is no longer valid.\n');
    const [user] = await users.digests();
    expect(user).toMatchObject({ role: 'admin', secretHash: digestOf(stdout.trim()) });
    const secret = expect.stringMatching(/^\w{32}$/);
    expect(await parsed(resetUser, 'Zoë', { json: true })).toEqual({ id: user?.id, name: 'Zoë', secret });
  });

  it('is unknown, or of the environment -> says which secrets it cannot change', async () => {
    for (const [name, message] of [
      ['nobody', 'There is no such user'],
      ['first', 'unset CHAT_USERNAME'],
      ['operator', 'unset ADMIN_USERNAME'],
    ] as const)
      await expect(run(resetUser, name, {})).rejects.toThrow(message);
    await run(addUser, 'operator', {});
    const { stderr } = await run(resetUser, 'operator', {});
    expect(stderr).toContain('change or unset ADMIN_USERNAME and ADMIN_PASSWORD');
  });
});

describe('a token', () => {
  const create = (options: object = {}, more: Environment = {}) =>
    printedBy(() => createToken({ DATABASE_URL: url, ...more }, { expires: '90d', ...options }));
  const created = async (options: object = {}, more: Environment = {}) =>
    JSON.parse((await create({ ...options, json: true }, more)).stdout);

  it('is made -> itself alone on standard output, and its digest is kept', async () => {
    const { stdout, stderr } = await create({ owner: 'blog' });
    expect(isAccessToken(stdout.trimEnd())).toBe(true);
    expect(stderr).toMatch(
      /^Access token \S+ of blog for blogs:write, until \S+Z; it is not shown again\.\n$/,
    );
    const grant = await tokens.find(digestOf(stdout.trimEnd()));
    expect(grant).toMatchObject({ user: { name: 'blog' }, scopes: ['blogs:write'] });
  });

  it('is made as JSON -> one object', async () => {
    const { token, ...facts } = await created({ scope: ['chat', 'blogs:read,chat'], owner: 'Zoë' });
    expect(isAccessToken(token)).toBe(true);
    const [{ id, createdAt, expiresAt } = facts] = await tokens.list();
    expect(facts).toEqual({ id, owner: 'Zoë', scopes: ['blogs:read', 'chat'], createdAt, expiresAt });
    const days = (Date.parse(facts.expiresAt) - Date.parse(facts.createdAt)) / 86_400_000;
    expect(days).toBeCloseTo(90, 3);
  });

  it('is made without --owner -> is of CHAT_USERNAME, or of the user that npm start has made, if there is one', async () => {
    await expect(create({}, { CHAT_USERNAME: 'first' })).rejects.toThrow('tokens create --owner NAME');
    expect(await users.list()).toEqual([]);
    for (const name of ['first', 'demo', 'blog']) await run(addUser, name, {});
    expect(await created({}, { CHAT_USERNAME: 'first' })).toMatchObject({ owner: 'first' });
    expect(await created({ owner: 'Zoë' }, { CHAT_USERNAME: 'first' })).toMatchObject({ owner: 'Zoë' });
    const dataDir = plant({ 'database-url': url, 'chat-credentials': 'demo:canary-of-the-secret\n' });
    const here = { DATABASE_URL: undefined, DATA_DIR: dataDir };
    expect(await created({}, here)).toMatchObject({ owner: 'demo' });
    expect(await created({}, { ...here, DATABASE_URL: url })).toMatchObject({ owner: 'blog' });
  });

  it('has the scope admin -> needs an operator', async () => {
    const scope = ['admin'];
    const refused =
      /^A token with the scope admin needs an operator: --owner must name a user with the role admin/;
    for (const more of [{}, { CHAT_USERNAME: 'demo' }])
      await expect(create({ scope }, more)).rejects.toThrow(refused);
    await expect(create({ scope, owner: 'demo' }, { ADMIN_USERNAME: 'root' })).rejects.toThrow(refused);
    expect(await tokens.list()).toEqual([]);
    expect(await created({ scope }, { ADMIN_USERNAME: 'root' })).toMatchObject({ owner: 'root' });
    await users.add({ name: 'ann', role: 'admin', secretHash: digestOf('x') });
    expect(await created({ scope, owner: 'ann' })).toMatchObject({ owner: 'ann', scopes: ['admin'] });
  });

  it.each<[options: object, message: string | RegExp]>([
    ...['canary', 'chat,canary', '', 'Chat'].map((scope): [object, string] => [
      { scope: [scope] },
      '--scope must be some of: blogs:write, blogs:read, chat, admin.',
    ]),
    [{ expires: 'canary' }, /^--expires must be like/],
    [{ expires: '2020-01-01' }, '--expires must be in the future.'],
    [{ owner: 'a:b' }, 'A name has'],
    ...['', 'a\n', 'x'.repeat(65)].map((name): [object, string] => [
      { name },
      '--name must have 1 to 64 characters',
    ]),
  ])('is to have %j -> refused, and none is made', async (options, message) => {
    await expect(create(options)).rejects.toThrow(message);
    expect(await tokens.list()).toEqual([]);
  });

  it('is listed -> never itself or its digest', async () => {
    const { token, id } = await created({
      owner: 'blog',
      name: 'ci',
      scope: ['chat,blogs:read'],
      expires: 'never',
    });
    const [{ stdout }, { stdout: json }] = [await run(listTokens, {}), await run(listTokens, { json: true })];
    expect(stdout).toMatch(/^ID +OWNER +NAME +SCOPES +CREATED +EXPIRES +LAST USED +REVOKED\n/);
    expect(stdout.split('\n')[1]).toMatch(
      new RegExp(`^${id} +blog +ci +blogs:read,chat +\\S+Z +never +- +-$`),
    );
    expect(JSON.parse(json)).toEqual(await tokens.list());
    const digest = digestOf(token);
    for (const secret of [token, digest.toString('hex'), digest.toString('base64'), digest.toString()])
      expect(stdout + json).not.toContain(secret);
  });

  it('is revoked, and revoked again -> says so both times; an unknown id is refused', async () => {
    const { token, id } = await created({ owner: 'blog' });
    for (const _ of [1, 2]) expect((await run(revokeToken, id)).stdout).toBe(`Revoked ${id}.\n`);
    expect(await tokens.find(digestOf(token))).toBeUndefined();
    for (const other of ['01890a5d-ac96-774b-bcce-b302099a8057', 'canary', ''])
      await expect(run(revokeToken, other)).rejects.toThrow(
        /^There is no access token with this id; see quillgate tokens list\.$/,
      );
  });
});

describe('parseExpiry', () => {
  const now = new Date('2026-11-20T12:00:00Z');

  it.each([
    ['30m', '2026-11-20T12:30:00.000Z'],
    ['12h', '2026-11-21T00:00:00.000Z'],
    ['90d', '2027-02-18T12:00:00.000Z'],
    ['2027-01-31', '2027-01-31T00:00:00.000Z'],
    ['2027-01-31T10:00:00+01:00', '2027-01-31T09:00:00.000Z'],
    ['never', undefined],
  ])('%s -> %s', (text, end) => {
    expect(parseExpiry(text, now)?.toISOString()).toBe(end);
  });

  it.each(['', '90', 'd', '-1d', '1.5d', '1w', '9999999d', '2026-02-30', 'Never', 'canary'])(
    '%j -> refused',
    (text) => {
      expect(() => parseExpiry(text, now)).toThrow(/^--expires must be like 30m, 12h or 90d/);
    },
  );

  it.each(['0d', '2026-11-20', '2020-01-01T00:00:00Z'])('%s, not in the future -> refused', (text) => {
    expect(() => parseExpiry(text, now)).toThrow('must be in the future');
  });
});

describe('the audit', () => {
  const entries = () => parsed(printAudit, { limit: '100', json: true });

  it('tells who has done what to which user and which token -> newest first, and no secret', async () => {
    const user = await parsed(addUser, 'Zoë', { json: true });
    const { id, token } = await parsed(createToken, { owner: 'Zoë', expires: 'never', json: true });
    await run(removeUser, 'Zoë');

    const [at, actor] = [expect.stringMatching(/^\d{4}-.*Z$/), `${userInfo().username}@${hostname()}`];
    const entry = (action: string, targetId: string, after?: object) => ({
      ...{ id: expect.any(String), at, actor, action, targetId, targetName: 'Zoë' },
      ...(after && { after }),
    });
    const found = await entries();
    // Those of one command have the same time.
    expect(found.slice(0, 2)).toEqual(
      expect.arrayContaining([entry('users.remove', user.id), entry('tokens.revoke', id)]),
    );
    expect(found.slice(2)).toEqual([
      entry('tokens.create', id, { scopes: ['blogs:write'], expiresAt: null }),
      entry('users.add', user.id, { role: 'user' }),
    ]);
    const { stdout } = await run(printAudit, { limit: '100' });
    expect(stdout).toMatch(/^AT +BY +ACTION +ID +NAME +BEFORE +AFTER\n/);
    const row = `\\S+Z +${actor} +users\\.add +${user.id} +Zoë +- +\\{"role":"user"\\}\n$`;
    expect(stdout).toMatch(new RegExp(row));
    for (const secret of [user.secret, token]) expect(stdout).not.toContain(secret);
  });

  it('has none, or more than are asked for -> a remark, or as many', async () => {
    expect(await run(printAudit, { limit: '100' })).toEqual({
      stdout: '',
      stderr: 'Nothing was done to users, tokens or settings yet.\n',
    });
    expect(await entries()).toEqual([]);
    for (const name of ['a', 'b', 'c']) await run(addUser, name, {});
    expect((await run(printAudit, { limit: '2' })).stdout.split('\n')).toHaveLength(4);
    for (const limit of ['0', 'x', '-1', '1e3', ''])
      await expect(run(printAudit, { limit })).rejects.toThrow('--limit must be a number');
  });
});
