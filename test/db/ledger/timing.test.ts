import { afterAll, it } from 'vitest';
import { sql } from '../../../db/database/drizzle.js';
import { writeLedger } from '../../../db/ledger/write.js';
import { openTestDatabase } from '../../support/database.js';
import { callRow, ledgerBatch, requestEnd, requestRow } from '../../support/ledger.js';

const { database, stop } = await openTestDatabase();
afterAll(stop);
it('times', async () => {
  for (let round = 0; round < 12; round++) {
    const n = round === 11 ? 2000 : 500;
    const ids = Array.from({ length: n }, () => crypto.randomUUID());
    const batch = ledgerBatch({
      requests: ids.map((chat) => requestRow({ chat, end: requestEnd() })),
      calls: ids.map((chat) => callRow({ chat })),
      ended: ids.map((chat) => ({ chat, attempt: 1, addedAt: callRow().addedAt, run: 1 })),
    });
    const t = performance.now();
    const p = process.cpuUsage();
    try {
      await writeLedger(database, batch);
    } catch (e) {
      console.log('failed', String(e));
    }
    const used = process.cpuUsage(p);
    console.log(
      n,
      Math.round(performance.now() - t),
      'ms; own cpu',
      Math.round((used.user + used.system) / 1000),
    );
  }
  await database.run((db) => db.execute(sql`analyze calls`));
});
