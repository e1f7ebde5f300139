import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { createToken } from '../../../cli/commands/tokens.js';
import { addUser, listUsers, removeUser, resetUser } from '../../../cli/commands/users.js';
import { createUserStore } from '../../../db/access/users.js';
import { sql } from '../../../db/database/drizzle.js';
import { digestOf } from '../../../shared/access-token.js';
import { openTestDatabase } from '../../support/database.js';
import { printedBy } from '../output.js';

const { database, url, stop } = await openTestDatabase();
afterAll(stop);
beforeEach(() => database.run((db) => db.execute(sql`truncate users, tokens`)));
const environment = { DATABASE_URL: url, CHAT_USERNAME: 'first', ADMIN_USERNAME: 'operator' };

/** Runs a command and gives what it printed. */
const run = (command: (...rest: never[]) => Promise<void>, ...args: unknown[]) =>
  printedBy(() => (command as (...rest: unknown[]) => Promise<void>)(environment, ...args));

describe('addUser', () => {
  it('prints the secret alone on standard output and keeps its digest', async () => {
    const { stdout, stderr } = await run(addUser, 'Zoë', {});
    expect(stdout).toMatch(/^[0-9A-Za-z]{32}\n$/);
    expect(stderr).toBe('The secret of Zoë for the chat service; it is not shown again.\n');
    await expect(run(addUser, 'Zoë', {})).rejects.toThrow('There is a user Zoë already');
    const digests = await createUserStore(database).digests();
    expect(digests).toMatchObject([{ name: 'Zoë', secretHash: digestOf(stdout.trim()) }]);
  });

  it.each(['', 'a:b', 'a\nb', 'a\u0085b', 'x'.repeat(129)])('refuses the name %j', async (name) => {
    await expect(run(addUser, name, {})).rejects.toThrow('A name has 1 to 128 characters');
  });

  it('gives the role that is asked for, and refuses others', async () => {
    await run(addUser, 'Zoë', { role: 'admin' });
    expect(await createUserStore(database).list()).toMatchObject([{ name: 'Zoë', role: 'admin' }]);
    await expect(run(addUser, 'Bob', { role: 'root' })).rejects.toThrow(
      '--role must be one of: user, admin.',
    );
  });
});

describe('listUsers', () => {
  it('prints names and times, never a secret', async () => {
    const { stdout: secret } = await run(addUser, 'Zoë', {});
    const { stdout } = await run(listUsers, {});
    expect(stdout).toMatch(
      /^ID +NAME {2}ROLE {2}HAS SECRET {2}CREATED\n[0-9a-f-]{36} {2}Zoë {3}user {2}yes {9}\d{4}-\S+Z\n$/,
    );
    const json = await run(listUsers, { json: true });
    expect(JSON.parse(json.stdout)).toEqual([
      {
        id: expect.stringMatching(/^[0-9a-f-]{36}$/),
        name: 'Zoë',
        role: 'user',
        hasSecret: true,
        createdAt: expect.any(String),
      },
    ]);
    expect(stdout + json.stdout).not.toContain(secret.trim());
  });
});

describe('removeUser', () => {
  it('removes the user, and says which secret the environment keeps valid', async () => {
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
});

describe('resetUser', () => {
  it('prints a new secret once, as JSON too', async () => {
    await run(addUser, 'Zoë', { role: 'admin' });
    const { stdout, stderr } = await run(resetUser, 'Zoë', {});
    expect(stdout).toMatch(/^[0-9A-Za-z]{32}\n$/);
    expect(stderr).toBe('The new secret of Zoë; it is not shown again. The old one is no longer valid.\n');
    const [user] = await createUserStore(database).digests();
    expect(user).toMatchObject({ role: 'admin', secretHash: digestOf(stdout.trim()) });
    const { stdout: json } = await run(resetUser, 'Zoë', { json: true });
    const secret = expect.stringMatching(/^\w{32}$/);
    expect(JSON.parse(json)).toEqual({ id: user?.id, name: 'Zoë', secret });
  });

  it('refuses an unknown name, and says which secrets it cannot change', async () => {
    await expect(run(resetUser, 'nobody', {})).rejects.toThrow('There is no such user');
    await expect(run(resetUser, 'first', {})).rejects.toThrow('unset CHAT_USERNAME');
    await expect(run(resetUser, 'operator', {})).rejects.toThrow('unset ADMIN_USERNAME');
    await run(addUser, 'operator', {});
    const { stderr } = await run(resetUser, 'operator', {});
    expect(stderr).toContain('change or unset ADMIN_USERNAME and ADMIN_PASSWORD');
  });
});
