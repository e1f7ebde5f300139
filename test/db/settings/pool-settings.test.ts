import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { listAudit, pruneAudit } from '../../../db/audit.js';
import { sql } from '../../../db/database/drizzle.js';
import { changePoolSetting, listPoolSettings } from '../../../db/settings/change-settings.js';
import type { PoolOverrides } from '../../../shared/protocol/settings.js';
import { openTestDatabase } from '../../support/database.js';

const { database, stop } = await openTestDatabase();
afterAll(stop);
beforeEach(() => database.run((db) => db.execute(sql`truncate pool_setting, audit`)));

const change = (expected: number, overrides: PoolOverrides, changedBy = 'ann') =>
  changePoolSetting(database, { provider: 'openai', expected, version: expected + 1, overrides, changedBy });
const isoTime = expect.stringMatching(/^\d{4}-.*Z$/);

describe('changePoolSetting', () => {
  it('keeps the settings, and who changed what when, from what to what', async () => {
    const first = { concurrency: 40, rate: { max: 6, durationMs: 1000 } };
    expect(await change(0, first)).toEqual({
      ...{ provider: 'openai', version: 1, overrides: first },
      ...{ changedAt: isoTime, changedBy: 'ann' },
    });
    const changed = await change(1, { intake: 'paused' }, 'bob');
    expect(await listPoolSettings(database)).toEqual([changed]);
    const entry = {
      id: expect.any(String),
      at: isoTime,
      action: 'pools.set',
      targetId: expect.any(String),
      targetName: 'openai',
    };
    expect(await listAudit(database, { limit: 10 })).toEqual([
      { ...entry, actor: 'bob', before: first, after: { intake: 'paused' } },
      { ...entry, actor: 'ann', before: {}, after: first },
    ]);
  });

  it.each([1, 2, 7])(
    'changes and writes nothing when version %i is expected and another is there',
    async (wrong) => {
      if (wrong !== 1) await change(0, {});
      expect(await change(wrong, { concurrency: 2 })).toBeUndefined();
      expect(await listAudit(database, { limit: 10 })).toHaveLength(wrong === 1 ? 0 : 1);
    },
  );

  it.each([0, 1])('lets one of ten change version %i at once', async (expected) => {
    if (expected === 1) await change(0, {});
    const changes = await Promise.all(
      Array.from({ length: 10 }, (_, n) => change(expected, { concurrency: n + 1 })),
    );
    const [winner, ...others] = changes.filter((changed) => changed !== undefined);
    expect(others).toEqual([]);
    expect(await listPoolSettings(database)).toEqual([winner]);
    expect(await listAudit(database, { limit: 20 })).toHaveLength(1 + expected);
  });

  it('leaves out what a newer release has written and this one cannot read', async () => {
    await change(0, { concurrency: 4 });
    await database.run((db) =>
      db.execute(sql`update pool_setting set overrides = '{"concurrency": "many"}'`),
    );
    expect(await listPoolSettings(database)).toEqual([]);
  });
});

describe('pruneAudit', () => {
  it('removes what is older than so many days, and nothing else', async () => {
    await change(0, {});
    await change(1, { concurrency: 2 });
    await database.run((db) =>
      db.execute(sql`update audit set at = now() - interval '400 days 1 hour' where after = '{}'`),
    );
    await pruneAudit(database, 401);
    expect(await listAudit(database, { limit: 10 })).toHaveLength(2);
    await pruneAudit(database, 400);
    expect(await listAudit(database, { limit: 10 })).toMatchObject([{ after: { concurrency: 2 } }]);
  });
});
