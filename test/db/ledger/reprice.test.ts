import { afterAll, expect, it } from 'vitest';
import { sql } from '../../../db/database/drizzle.js';
import { repriceCalls } from '../../../db/ledger/reprice.js';
import { readUsage } from '../../../db/ledger/usage.js';
import { writeLedger } from '../../../db/ledger/write.js';
import type { PricedCall } from '../../../shared/prices/prices.js';
import { openTestDatabase } from '../../support/database.js';
import { callRow, ledgerBatch, lostRun, noon } from '../../support/ledger.js';

const { database, stop } = await openTestDatabase();
afterAll(stop);

it('fills the unknown costs from a day on, and no other; a repetition fills nothing', async () => {
  const day = 86_400_000;
  const unpriced = { cost: null, priceDated: null };
  const many = Array.from({ length: 2001 }, (_, n) => callRow({ ...unpriced, chat: `${n}`, call: 9 }));
  const calls = [
    ...many,
    callRow({ ...unpriced, answeredModel: null, model: 'asked', tier: 'flex', tokens: { cached: 7 } }),
    callRow({ ...unpriced, call: 2, answeredModel: 'unknown' }),
    callRow({ ...unpriced, call: 3, endedAt: noon - day }),
    callRow({ ...unpriced, call: 4, tokens: { thinking: Number.NaN } }),
    callRow({ call: 5, cost: 77 }),
    lostRun({ run: 2 }),
  ];
  for (let n = 0; n < calls.length; n += 500)
    await writeLedger(database, ledgerBatch({ calls: calls.slice(n, n + 500) }));
  const asked: PricedCall[] = [];
  const prices = {
    costOf: (call: PricedCall) => {
      asked.push(call);
      const isKnown = call.model !== 'unknown' && call.requests > 0;
      return isKnown
        ? { nanoDollars: 1_000_000_000n, dated: '2026-11-30' }
        : { nanoDollars: undefined, unknown: 'model' as const };
    },
  };
  const reprice = () => repriceCalls(database, { from: '2026-12-01', prices });
  expect(await reprice()).toBe(2002);
  expect(asked).toContainEqual({
    ...{ provider: 'openai', model: 'asked', tier: 'flex', at: new Date(noon), requests: 1 },
    tokens: { input: 100, cached: 7, written: 0, writtenFor1h: 0, output: 10, thinking: 0 },
  });
  expect(await reprice()).toBe(0);
  const { total } = await readUsage(database, { from: '2026-12-01', to: '2026-12-01', by: [] });
  expect(total).toMatchObject({ calls: 2005, unpriced: 2, lost: 1, cost: 2002.000000077 });
  const before = await readUsage(database, { from: '2026-11-30', to: '2026-11-30', by: [] });
  expect(before.total).toMatchObject({ unpriced: 1, cost: null });
  const dated = sql`select price_dated as day, count(*)::int as n from calls where cost_nanos is not null group by 1 order by 1`;
  expect([...(await database.run((db) => db.execute(dated)))]).toEqual([
    { day: '2026-11-01', n: 1 },
    { day: '2026-11-30', n: 2002 },
  ]);
});
