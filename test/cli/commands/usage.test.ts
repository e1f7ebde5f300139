import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { forgetUsage, printUsage, repriceUsage } from '../../../cli/commands/usage.js';
import { listAudit } from '../../../db/audit.js';
import { sql } from '../../../db/database/drizzle.js';
import { writeLedger } from '../../../db/ledger/write.js';
import { openTestDatabase } from '../../support/database.js';
import { plant } from '../../support/folders.js';
import { annsId, callRow, ledgerBatch, requestEnd, requestRow } from '../../support/ledger.js';
import { printedBy } from '../output.js';

const { database, url, stop } = await openTestDatabase();
afterAll(stop);
const environment = { DATABASE_URL: url };
const days = { from: '2026-12-01', to: '2026-12-31' };

beforeEach(async () => {
  await database.run((db) => db.execute(sql`truncate requests, calls, usage_days, audit`));
  const calls = [
    callRow({ cost: 1_500_000_000 }),
    callRow({
      call: 2,
      cost: null,
      priceDated: null,
      answeredModel: '=odd',
      origin: { name: '=Ann', user: 'x' },
    }),
  ];
  await writeLedger(database, ledgerBatch({ requests: [requestRow({ end: requestEnd() })], calls }));
});

const print = (options: Partial<Parameters<typeof printUsage>[1]>) =>
  printedBy(() => printUsage(environment, { by: 'day', ...days, ...options }));

describe('usage', () => {
  it('is printed -> a table with its total, and the lines for prices that are missing', async () => {
    const { stdout, stderr } = await print({ by: 'user,model' });
    expect(stdout).toMatch(
      /^USER +MODEL +CALLS +FAILED +ESTIMATED +LOST +INPUT +CACHED +OUTPUT +DOLLARS +NO PRICE\nann +gpt-1 +1 +0 +0 +0 +100 +0 +10 +1\.5000 +0\n=Ann +=odd +1 .* unknown +1\ntotal +2 +0 +0 +0 +200 +0 +20 +at least 1\.5000 +1\n$/,
    );
    expect(stderr).toContain('\n{"provider":"openai","id":"=odd","input": ,"cached": ,"output": }\n');
    expect(await print({ user: 'nobody' })).toEqual({
      stdout: '',
      stderr: 'Nothing was spent in these days.\n',
    });
  });

  it('is printed as CSV or JSON -> without remarks, and no text is a formula', async () => {
    const csv = await print({ by: 'user', csv: true, user: 'x' });
    expect(csv).toEqual({
      stdout:
        "user,userId,calls,failed,estimated,unpriced,lost,input,cached,written,writtenFor1h,output,thinking,cost\r\n'=Ann,x,1,0,0,1,0,100,0,0,0,10,0,\r\n",
      stderr: '',
    });
    const { stdout } = await print({ json: true, model: 'gpt-1', provider: 'openai' });
    expect(JSON.parse(stdout)).toMatchObject({
      ...days,
      rows: [{ day: '2026-12-01', cost: 1.5 }],
      total: { calls: 1 },
    });
  });

  it.each([
    [{ by: 'colour' }, '--by must be one or two of: day, provider, model, user, token, api, session.'],
    [{ by: 'day,user,model' }, '--by must be one or two keys.'],
    [{ from: '2026-13-01' }, '--from must be a day such as 2026-12-01.'],
    [{ to: 'canary' }, '--to must be a day such as 2026-12-01.'],
    [{ to: '2026-11-01' }, '--to must not be before from.'],
    [{ provider: 'x' }, '--provider must be one of: openai, anthropic, bedrock, vertexai.'],
    [{ session: 's', from: '2026-01-01' }, '--from must be at most 31 days before the end, by session.'],
  ])('is asked for with %j -> refused', async (options, message) => {
    await expect(print(options)).rejects.toThrow(message);
  });

  it('is priced anew by the own file -> what was unknown has a cost', async () => {
    const folder = plant({ 'prices.json': '[{"provider":"openai","id":"=odd","input":1,"output":2}]' });
    const reprice = (from: string) =>
      printedBy(() => repriceUsage({ ...environment, PRICES_FILE: `${folder}/prices.json` }, { from }));
    expect((await reprice('2026-12-01')).stdout).toBe('1 call has a cost now.\n');
    expect((await reprice('2026-12-01')).stdout).toBe('0 calls have a cost now.\n');
    expect((await print({ csv: true })).stdout).toMatch(/,1\.50012\r\n$/);
    await expect(reprice('x')).rejects.toThrow('--from must be a day');
  });

  it('is forgotten of a user -> the audit says who did it', async () => {
    const { stdout } = await printedBy(() => forgetUsage(environment, annsId));
    expect(stdout).toBe("Replaced the user's name in 1 request.\n");
    expect((await print({ by: 'user' })).stdout).toMatch(/^forgotten-[0-9a-f]{16} /m);
    expect(await listAudit(database, { limit: 9 })).toMatchObject([
      { action: 'usage.forget', actor: expect.any(String) },
    ]);
  });
});
