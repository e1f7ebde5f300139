import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTokenStore } from '../../../db/access/tokens.js';
import type { CallRow } from '../../../db/ledger/rows.js';
import { readUsage, type UsageFilter } from '../../../db/ledger/usage.js';
import { writeLedger } from '../../../db/ledger/write.js';
import type { UsageRow } from '../../../shared/contracts/ledger.js';
import { openTestDatabase } from '../../support/database.js';
import { annsId, callRow, ledgerBatch, lostRun, noon } from '../../support/ledger.js';

const { database, stop } = await openTestDatabase();
afterAll(stop);

const december = { from: '2026-12-01', to: '2026-12-31' };
const read = (filter: Partial<UsageFilter> = {}) => readUsage(database, { ...december, by: [], ...filter });
const other = '0d6f0a9e-5f0e-4bb4-8d1c-3c1a45f2a002';
const [ann, day] = [annsId, 86_400_000];
let token: string;

it('nothing was spent -> sums of 0, since no day', async () => {
  const tokens = { input: 0, cached: 0, written: 0, writtenFor1h: 0, output: 0, thinking: 0 };
  const total = { calls: 0, failed: 0, estimated: 0, unpriced: 0, lost: 0, tokens, cost: 0 };
  expect(await read({ by: ['day'] })).toEqual({
    ...december,
    rows: [],
    total,
    unknownModels: [],
    since: null,
  });
  await writeLedger(database, ledgerBatch({ calls: [lostRun()] }));
  await writeLedger(database, ledgerBatch({ ended: [callRow()] }));
  expect(await read({ by: ['day'] })).toMatchObject({ rows: [], total, since: '2026-12-01' });
});

describe('what was spent', () => {
  beforeAll(async () => {
    const secret = { scopes: ['chat' as const], expiresAt: undefined, secretHash: Buffer.from('x') };
    token = (await createTokenStore(database).create({ owner: 'ann', name: 'build', ...secret })).id;
    const ben = { user: other, name: 'Ben' };
    const calls: CallRow[] = [
      callRow({ cost: 3_000_000_000, origin: { session: 's', token } }),
      callRow({ call: 2, cost: 1, endedAt: noon + day, answeredModel: null, origin: { session: 's' } }),
      callRow({
        call: 3,
        cost: null,
        provider: 'bedrock',
        answeredModel: 'no"va',
        known: 'estimated',
        origin: ben,
      }),
      callRow({ call: 4, cost: 0, tokens: { input: 0, output: 0 }, code: 'provider_error', origin: ben }),
      callRow({ call: 5, endedAt: noon - day }),
      lostRun({ run: 2, origin: ben }),
    ];
    await writeLedger(database, ledgerBatch({ calls }));
  });

  const brief = (rows: UsageRow[], ...names: (keyof UsageRow)[]) =>
    rows.map((row) => [...names.map((name) => row[name]), row.calls, row.cost]);

  it('is summed over the days, with what is unknown beside it', async () => {
    const { total, rows, since, unknownModels } = await read();
    expect(total).toEqual({
      ...{ calls: 4, failed: 1, estimated: 1, unpriced: 1, lost: 1, cost: 3.000000001 },
      tokens: { input: 300, cached: 0, written: 0, writtenFor1h: 0, output: 30, thinking: 0 },
    });
    expect([rows, since]).toEqual([[], '2026-11-30']);
    const line = '{"provider":"bedrock","id":"no\\"va","input": ,"cached": ,"output": }';
    expect(unknownModels).toEqual([{ provider: 'bedrock', model: 'no"va', calls: 1, line }]);
  });

  it('is summed by one key or two, the dearest first, but days in their order', async () => {
    expect(brief((await read({ by: ['day'] })).rows, 'day')).toEqual([
      ['2026-12-01', 3, 3],
      ['2026-12-02', 1, 1e-9],
    ]);
    const { rows } = await read({ by: ['user', 'model'] });
    expect(brief(rows, 'user', 'userId', 'model')).toEqual([
      ['ann', ann, 'gpt-1', 1, 3],
      ['ann', ann, 'gpt', 1, 1e-9],
      ...[
        ['Ben', other, '', 1, 0],
        ['Ben', other, 'no"va', 1, null],
      ].map((row) => expect.arrayContaining(row)),
    ]);
    expect(brief((await read({ by: ['provider', 'api'] })).rows, 'provider', 'api')).toEqual([
      ['openai', 'chat', 3, 3.000000001],
      ['bedrock', 'chat', 1, null],
    ]);
    expect(brief((await read({ by: ['token'] })).rows, 'token', 'tokenId')).toEqual([
      ['build', token, 1, 3],
      ['', '', 3, 1e-9],
    ]);
  });

  it.each<[by: Partial<UsageFilter>, calls: number]>([
    [{ user: 'Ben' }, 0],
    [{ user: other }, 2],
    [{ token: 'build' }, 1],
    [{ provider: 'bedrock' }, 1],
    [{ model: 'gpt' }, 1],
    [{ api: 'completions' }, 0],
    [{ from: '2026-11-30', to: '2026-11-30' }, 1],
    [{ session: 's' }, 2],
    [{ session: 's', token: 'build' }, 1],
    [{ session: 's', user: other }, 0],
  ])('only %j -> %d calls', async (filter, calls) => {
    expect((await read(filter)).total.calls).toBe(calls);
  });

  it('is the same by session, read from the calls of 31 days at most', async () => {
    const { rows, total, unknownModels } = await read({ by: ['session'] });
    expect(brief(rows, 'session')).toEqual([
      ['s', 2, 3.000000001],
      ['', 2, 0],
    ]);
    const days = await read({});
    expect([total, unknownModels]).toEqual([days.total, days.unknownModels]);
    const longer = read({ by: ['session'], from: '2026-11-30' });
    await expect(longer).rejects.toMatchObject({ code: 'invalid_request' });
    await expect(read({ from: '2027-01-01' })).rejects.toMatchObject({ code: 'invalid_request' });
  });
});
