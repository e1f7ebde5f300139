import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { listAudit } from '../../../db/audit.js';
import { sql } from '../../../db/database/drizzle.js';
import { listRequests } from '../../../db/ledger/read.js';
import { forgetUser, pruneLedger } from '../../../db/ledger/retention.js';
import { readUsage } from '../../../db/ledger/usage.js';
import { writeLedger } from '../../../db/ledger/write.js';
import { openTestDatabase } from '../../support/database.js';
import { annsId, callRow, ledgerBatch, noon, requestEnd, requestRow } from '../../support/ledger.js';

const { database, stop } = await openTestDatabase();
afterAll(stop);
beforeEach(() => database.run((db) => db.execute(sql`truncate requests, calls, usage_days, audit`)));

const day = 86_400_000;
const count = async (table: string) => {
  const all = sql`select count(*)::int as n from ${sql.identifier(table)}`;
  return (await database.run((db) => db.execute<{ n: number }>(all)))[0]?.n;
};
const counts = () => Promise.all(['requests', 'calls', 'usage_days'].map(count));

describe('pruneLedger', () => {
  it('removes old requests with their calls, also those without an end, and no day', async () => {
    const old = Date.now() - 10 * day;
    const requests = [
      requestRow({ chat: 'old', addedAt: old - 1, end: requestEnd({ at: old }) }),
      requestRow({ chat: 'joined', addedAt: old - 1, joins: 'old' }),
      requestRow({ chat: 'new', addedAt: old - 1, end: requestEnd({ at: Date.now() }) }),
    ];
    const calls = ['old', 'new'].map((chat) => callRow({ chat, endedAt: old }));
    await writeLedger(database, ledgerBatch({ requests, calls }));
    await pruneLedger(database, { days: 11 });
    expect(await counts()).toEqual([3, 2, 1]);
    await pruneLedger(database, { days: 9 });
    expect(await counts()).toEqual([1, 1, 1]);
  });

  it('goes on while there are 5,000 rows at once, until it is stopped', async () => {
    const fill = () =>
      database.run((db) =>
        db.execute(sql`insert into requests (chat, user_id, api, console, provider, streamed, stored, added_at)
          select n, 'u', 'chat', false, 'openai', false, false, '2020-01-01' from generate_series(1, 5001) as n`),
      );
    await fill();
    await pruneLedger(database, { days: 1, pauseMs: 1 });
    expect(await count('requests')).toBe(0);
    await fill();
    const stopped = pruneLedger(database, { days: 1, signal: AbortSignal.abort() });
    await expect(stopped).rejects.toMatchObject({ name: 'AbortError' });
    expect(await count('requests')).toBe(1);
  });
});

describe('forgetUser', () => {
  const user = annsId;
  const other = '0d6f0a9e-5f0e-4bb4-8d1c-3c1a45f2a002';
  const write = (chat: string, origin: object = {}) =>
    writeLedger(
      database,
      ledgerBatch({
        requests: [requestRow({ chat, end: requestEnd(), origin })],
        calls: [callRow({ chat, origin })],
      }),
    );
  const usage = () => readUsage(database, { from: '2026-12-01', to: '2026-12-01', by: ['user'] });

  it('leaves a digest in place of name and id, the sums, and an entry of the audit', async () => {
    await write('a');
    await write('b', { user: other, name: 'Ben' });
    const before = await usage();
    expect(await forgetUser(database, user, 'op')).toBe(1);
    const { data } = await listRequests(database, { limit: 9, to: new Date(noon + 1) });
    const digest = expect.stringMatching(/^forgotten-[0-9a-f]{16}$/);
    expect(data.map((request) => [request.id, request.user, request.userId])).toEqual([
      ['b', 'Ben', other],
      ['a', digest, digest],
    ]);
    const after = await usage();
    expect(after.total).toEqual(before.total);
    expect(after.rows.map((row) => row.user).toSorted()).toEqual(['Ben', digest]);
    const calls = await database.run((db) =>
      db.execute(sql`select user_id, user_name from calls order by chat`),
    );
    expect([...calls]).toEqual([
      { user_id: digest, user_name: digest },
      { user_id: other, user_name: 'Ben' },
    ]);
    const entry = { actor: 'op', action: 'usage.forget', targetId: user, targetName: user };
    expect(await listAudit(database, { limit: 9 })).toEqual([expect.objectContaining(entry)]);
  });

  it('adds what comes afterwards to the same digest, when it is repeated', async () => {
    await write('a');
    await forgetUser(database, user, 'op');
    await write('b');
    expect(await forgetUser(database, user, 'op')).toBe(1);
    const { rows, total } = await usage();
    expect([rows.length, rows[0]?.calls, total.calls]).toEqual([1, 2, 2]);
  });

  it('is of nobody who is there -> nothing, and no entry', async () => {
    expect(await forgetUser(database, other, 'op')).toBe(0);
    expect(await forgetUser(database, 'nobody', 'op')).toBe(0);
    expect(await listAudit(database, { limit: 9 })).toEqual([]);
  });
});
