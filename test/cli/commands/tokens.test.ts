import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { createToken, listTokens, revokeToken } from '../../../cli/commands/tokens.js';
import { createTokenStore } from '../../../db/access/tokens.js';
import { createUserStore } from '../../../db/access/users.js';
import { sql } from '../../../db/database/drizzle.js';
import { digestOf, isAccessToken } from '../../../shared/access-token.js';
import type { Environment } from '../../../shared/config/config.js';
import { openTestDatabase } from '../../support/database.js';
import { plant } from '../../support/folders.js';
import { collectOutput, printedBy } from '../output.js';

const { database, url, stop } = await openTestDatabase();
afterAll(stop);
beforeEach(() => database.run((db) => db.execute(sql`truncate users, tokens`)));
const environment = { DATABASE_URL: url };
const store = createTokenStore(database);

async function create(options: Partial<Parameters<typeof createToken>[1]> = {}, more: Environment = {}) {
  return printedBy(() => createToken({ ...environment, ...more }, { expires: '90d', ...options }));
}

async function created(options: Parameters<typeof create>[0] = {}, more: Environment = {}) {
  return JSON.parse((await create({ ...options, json: true }, more)).stdout);
}

describe('createToken', () => {
  it('prints the token alone on standard output and keeps its digest', async () => {
    const { stdout, stderr } = await create();
    expect(isAccessToken(stdout.trimEnd())).toBe(true);
    expect(stderr).toMatch(
      /^Access token \S+ of blog for blogs:write, until \S+Z; it is not shown again\.\n$/,
    );
    const grant = await store.find(digestOf(stdout.trimEnd()));
    expect(grant).toMatchObject({ user: { name: 'blog' }, scopes: ['blogs:write'] });
  });

  it('prints one JSON object when asked to', async () => {
    const { token, ...facts } = await created({ scope: ['chat', 'blogs:read,chat'], owner: 'Zoë' });
    expect(isAccessToken(token)).toBe(true);
    const [{ id, createdAt, expiresAt } = facts] = await store.list();
    expect(facts).toEqual({ id, owner: 'Zoë', scopes: ['blogs:read', 'chat'], createdAt, expiresAt });
    const days = (Date.parse(facts.expiresAt) - Date.parse(facts.createdAt)) / 86_400_000;
    expect(days).toBeCloseTo(90, 3);
  });

  it('belongs to CHAT_USERNAME, or the user that npm start has made, without --owner', async () => {
    expect(await created({}, { CHAT_USERNAME: 'first' })).toMatchObject({ owner: 'first' });
    expect(await created({ owner: 'Zoë' }, { CHAT_USERNAME: 'first' })).toMatchObject({ owner: 'Zoë' });
    const dataDir = plant({ 'database-url': url, 'chat-credentials': 'demo:canary-of-the-secret\n' });
    const here = { DATABASE_URL: undefined, DATA_DIR: dataDir };
    expect(await created({}, here)).toMatchObject({ owner: 'demo' });
    expect(await created({}, { ...here, DATABASE_URL: url })).toMatchObject({ owner: 'blog' });
  });

  it('belongs to an operator when it has the scope admin', async () => {
    const scope = ['admin'];
    const refused =
      /^A token with the scope admin needs an operator: --owner must name a user with the role admin/;
    for (const more of [{}, { CHAT_USERNAME: 'demo' }])
      await expect(create({ scope }, more)).rejects.toThrow(refused);
    await expect(create({ scope, owner: 'demo' }, { ADMIN_USERNAME: 'root' })).rejects.toThrow(refused);
    expect(await store.list()).toEqual([]);
    expect(await created({ scope }, { ADMIN_USERNAME: 'root' })).toMatchObject({ owner: 'root' });
    await createUserStore(database).add({ name: 'ann', role: 'admin', secretHash: digestOf('x') });
    expect(await created({ scope, owner: 'ann' })).toMatchObject({ owner: 'ann', scopes: ['admin'] });
  });

  it('refuses scopes, ends and owners it cannot take, and makes nothing', async () => {
    for (const scope of ['canary', 'chat,canary', '', 'Chat'])
      await expect(create({ scope: [scope] })).rejects.toThrow(
        '--scope must be some of: blogs:write, blogs:read, chat, admin.',
      );
    await expect(create({ expires: 'canary' })).rejects.toThrow(/^--expires must be like/);
    await expect(create({ expires: '2020-01-01' })).rejects.toThrow('--expires must be in the future.');
    await expect(create({ owner: 'a:b' })).rejects.toThrow('A name has');
    expect(await store.list()).toEqual([]);
  });
});

describe('listTokens', () => {
  const list = (options = {}) => printedBy(() => listTokens(environment, options));

  it('prints every token, never a secret or its digest', async () => {
    const { token, id } = await created({ scope: ['chat,blogs:read'], expires: 'never' });
    const { stdout } = await list();
    const { stdout: json } = await list({ json: true });
    expect(stdout).toMatch(/^ID +OWNER +SCOPES +CREATED +EXPIRES +LAST USED +REVOKED\n/);
    expect(stdout.split('\n')[1]).toMatch(new RegExp(`^${id} +blog +blogs:read,chat +\\S+Z +never +- +-$`));
    expect(JSON.parse(json)).toEqual(await store.list());
    const digest = digestOf(token);
    for (const secret of [token, digest.toString('hex'), digest.toString('base64'), digest.toString()])
      expect(stdout + json).not.toContain(secret);
  });
});

describe('revokeToken', () => {
  it('revokes a token, may be repeated, and refuses an unknown id', async () => {
    const { token, id } = await created();
    const output = collectOutput();
    for (const _ of [1, 2]) await revokeToken(environment, id);
    expect(output.stdout).toBe(`Revoked ${id}.\n`.repeat(2));
    expect(await store.find(digestOf(token))).toBeUndefined();
    for (const other of ['01890a5d-ac96-774b-bcce-b302099a8057', 'canary', ''])
      await expect(revokeToken(environment, other)).rejects.toThrow(
        /^There is no access token with this id; see quillgate tokens list\.$/,
      );
  });
});
