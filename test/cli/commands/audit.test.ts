import { hostname, userInfo } from 'node:os';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { printAudit } from '../../../cli/commands/audit.js';
import { createToken, revokeToken } from '../../../cli/commands/tokens.js';
import { addUser, removeUser } from '../../../cli/commands/users.js';
import { sql } from '../../../db/database/drizzle.js';
import { openTestDatabase } from '../../support/database.js';
import { printedBy } from '../output.js';

const { database, url, stop } = await openTestDatabase();
afterAll(stop);
beforeEach(() => database.run((db) => db.execute(sql`truncate users, tokens, audit`)));
const environment = { DATABASE_URL: url };

const printed = (options: { limit?: string; json?: boolean } = {}) =>
  printedBy(() => printAudit(environment, { limit: '100', ...options }));
const entries = async () => JSON.parse((await printed({ json: true })).stdout);

describe('printAudit', () => {
  it('tells who has done what to which user and which token, newest first, and no secret', async () => {
    const user = JSON.parse((await printedBy(() => addUser(environment, 'Zoë', { json: true }))).stdout);
    const options = { owner: 'Zoë', expires: 'never', json: true };
    const [one, two] = [
      JSON.parse((await printedBy(() => createToken(environment, options))).stdout),
      JSON.parse((await printedBy(() => createToken(environment, options))).stdout),
    ];
    await printedBy(() => revokeToken(environment, one.id));
    await printedBy(() => removeUser(environment, 'Zoë'));

    const [at, actor] = [expect.stringMatching(/^\d{4}-.*Z$/), `${userInfo().username}@${hostname()}`];
    const entry = (action: string, targetId: string, after?: object) => ({
      ...{ id: expect.any(String), at, actor, action, targetId, targetName: 'Zoë' },
      ...(after && { after }),
    });
    const mayWrite = { scopes: ['blogs:write'], expiresAt: null };
    const found = await entries();
    // Those of one command have the same time.
    expect(found.slice(0, 2)).toEqual(
      expect.arrayContaining([entry('users.remove', user.id), entry('tokens.revoke', two.id)]),
    );
    expect(found.slice(2)).toEqual([
      entry('tokens.revoke', one.id),
      entry('tokens.create', two.id, mayWrite),
      entry('tokens.create', one.id, mayWrite),
      entry('users.add', user.id, { role: 'user' }),
    ]);
    const { stdout } = await printed();
    expect(stdout).toMatch(/^AT +BY +ACTION +ID +NAME +BEFORE +AFTER\n/);
    expect(stdout).toMatch(
      new RegExp(`\\S+Z +${actor} +users\\.add +${user.id} +Zoë +- +\\{"role":"user"\\}\n$`),
    );
    for (const secret of [user.secret, one.token, two.token]) expect(stdout).not.toContain(secret);
  });

  it('prints as many as are asked for, and a remark when there are none', async () => {
    expect(await printed()).toEqual({
      stdout: '',
      stderr: 'Nothing was done to users, tokens or settings yet.\n',
    });
    expect((await printed({ json: true })).stdout).toBe('[]\n');
    for (const name of ['a', 'b', 'c']) await printedBy(() => addUser(environment, name, {}));
    expect((await printed({ limit: '2' })).stdout.split('\n')).toHaveLength(4);
    for (const limit of ['0', 'x', '-1', '1e3', ''])
      await expect(printed({ limit })).rejects.toThrow('--limit must be a number');
  });
});
