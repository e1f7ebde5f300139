import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createUserStore } from '../../../db/access/users.js';
import { sql } from '../../../db/database/drizzle.js';
import type { AuditPage } from '../../../shared/accounts.js';
import { type ChatApp, startChatApp } from '../../support/chat-app.js';
import { openTestDatabase } from '../../support/database.js';
import { asOperator } from '../../support/operator-client.js';

const { database, stop } = await openTestDatabase();
let app: ChatApp;
beforeAll(async () => {
  app = await startChatApp({ adminDatabase: database });
});
afterAll(async () => {
  await app.close();
  await stop();
});
beforeEach(() => database.run((db) => db.execute(sql`truncate users, tokens, audit`)));

const ask = (query = '') => asOperator(app, { path: `/admin/audit${query}` });
const read = async (query = '') => (await (await ask(query)).json()) as AuditPage;
const add = (name: string, actor = 'ann') =>
  createUserStore(database, actor).add({ name, secretHash: Buffer.from('x') });
const namesIn = ({ data }: AuditPage) => data.map(({ targetName }) => targetName);

describe('GET /admin/audit', () => {
  it('has one page after the other, newest first, to the microsecond', async () => {
    for (const name of ['a', 'b', 'c', 'd']) await add(name);
    // Within one millisecond, and two of them at once: JavaScript could not tell them apart.
    const time = `'2026-11-21 10:00:00.00000' || case target_name when 'a' then 1 when 'd' then 3 else 2 end`;
    await database.run((db) => db.execute(sql`update audit set at = (${sql.raw(time)})::timestamptz`));
    const names: string[] = [];
    let before = '';
    for (let page = await read('?limit=1'); ; page = await read(`?limit=1&before=${before}`)) {
      names.push(...namesIn(page));
      if (page.next === null) break;
      before = page.next;
    }
    expect([names[0], names.slice(1, 3).sort(), names.slice(3)]).toEqual(['d', ['b', 'c'], ['a']]);
    expect((await read('?limit=4')).next).toBeNull();
  });

  it('has what one did, what was done to one, and what was done in one way', async () => {
    await add('a', 'ann');
    await add('b', 'bob');
    await createUserStore(database, 'bob').remove('a');
    expect(namesIn(await read('?actor=ann'))).toEqual(['a']);
    expect(namesIn(await read('?target=b'))).toEqual(['b']);
    expect(namesIn(await read('?actor=bob&action=users.remove'))).toEqual(['a']);
    expect(namesIn(await read('?actor='))).toEqual([]);
    expect((await read()).data[0]).toMatchObject({
      ...{ id: expect.any(String), at: expect.stringMatching(/Z$/), actor: 'bob' },
      ...{ action: 'users.remove', targetName: 'a' },
    });
  });

  it('is empty before what is there no more', async () => {
    await add('a');
    expect(await read('?before=019a8f3e-5c71-7d2a-b3f4-0a1b2c3d4e5f')).toEqual({ data: [], next: null });
  });

  it.each([
    ['?before=1', 'before'],
    ['?limit=0', 'limit'],
    ['?action=users', 'action'],
    ['?actor=%00', 'actor'],
    ['?actor=%ff', 'actor'],
    [`?target=${'x'.repeat(501)}`, 'target'],
  ])('is 400 for %s', async (query, pointer) => {
    const response = await ask(query);
    expect([response.status, await response.json()]).toMatchObject([400, { errors: [{ pointer }] }]);
  });
});
