import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { openDatabase } from '../../../db/database/client.js';
import { sql } from '../../../db/database/drizzle.js';
import type { LedgerBatch } from '../../../db/ledger/rows.js';
import { writeLedger } from '../../../db/ledger/write.js';
import { generousLimits, openTestDatabase } from '../../support/database.js';
import { callRow, ledgerBatch, lostRun, noon, requestEnd, requestRow } from '../../support/ledger.js';
import { createRecordingLog } from '../../support/recording-log.js';

const { database, url, stop } = await openTestDatabase();
const other = openDatabase({ url, poolSize: 1, log: createRecordingLog().log, ...generousLimits });
afterAll(async () => {
  await other.close();
  await stop();
});
beforeEach(() => database.run((db) => db.execute(sql`truncate requests, calls, usage_days`)));

const write = (some: Partial<LedgerBatch>, by = database) => writeLedger(by, ledgerBatch(some));
const rows = async (table: 'requests' | 'calls' | 'usage_days') => [
  ...(await database.run((db) =>
    db.execute(sql`select * from ${sql.identifier(table)} order by 1, 2, 3, 4, 5`),
  )),
];
const all = async () => [await rows('requests'), await rows('calls'), await rows('usage_days')];
const run = (n: number, chat = 'a') => ({ chat, attempt: 1, addedAt: new Date(noon - 5000), run: n });

const mixed = ledgerBatch({
  requests: [
    requestRow({ end: requestEnd() }),
    requestRow({ chat: 'b', left: { code: 'timeout', at: noon } }),
  ],
  calls: [
    callRow(),
    callRow({ call: 2, kind: 'retry', cost: 500 }),
    callRow({ chat: 'b', provider: 'bedrock', known: 'estimated', cost: null, code: 'provider_timeout' }),
    callRow({ chat: 'b', call: 2, tokens: { input: 0, output: 0 }, cost: 0, code: 'provider_error' }),
    lostRun({ chat: 'c' }),
  ],
  ended: [run(1), run(1, 'b')],
});

describe('the days', () => {
  it('are the sums of the calls, and those without tokens have no model', async () => {
    expect(await writeLedger(database, mixed)).toEqual(new Map([['openai', 1500n]]));
    const counts = { failed: '0', estimated: '0', lost: '0', unpriced: '0', cost_nanos: '0' };
    expect(await rows('usage_days')).toMatchObject([
      {
        provider: 'bedrock',
        model: 'gpt-1',
        calls: '1',
        ...counts,
        failed: '1',
        estimated: '1',
        unpriced: '1',
      },
      { provider: 'openai', model: '', calls: '1', ...counts, failed: '1', lost: '1', input: '0' },
      {
        provider: 'openai',
        model: 'gpt-1',
        calls: '2',
        ...counts,
        input: '200',
        output: '20',
        cost_nanos: '1500',
      },
    ]);
  });

  it('are those of UTC, one row for each user, token and API', async () => {
    const late = Date.parse('2026-12-01T23:59:59.999Z');
    await write({
      calls: [
        callRow({ endedAt: late }),
        callRow({ call: 2, endedAt: late + 1 }),
        callRow({ call: 3, endedAt: late, origin: { token: 'key' } }),
        callRow({ call: 4, endedAt: late, origin: { api: 'completions' } }),
      ],
    });
    expect((await rows('usage_days')).map(({ day, token_id, api }) => [day, token_id, api])).toEqual([
      ['2026-12-01', '', 'chat'],
      ['2026-12-01', '', 'completions'],
      ['2026-12-01', 'key', 'chat'],
      ['2026-12-02', '', 'chat'],
    ]);
  });

  it('stay as they are when a batch is written again, also by two at once', async () => {
    const twice = await Promise.all([writeLedger(database, mixed), writeLedger(other, mixed)]);
    expect(twice.map((costs) => costs.get('openai') ?? 0n).toSorted()).toEqual([0n, 1500n]);
    const once = await all();
    expect(once.map((each) => each.length)).toEqual([2, 5, 3]);
    expect((await writeLedger(database, mixed)).size).toBe(0);
    expect(await all()).toEqual(once);
  });
});

describe('a lost run', () => {
  const lost = async () => [
    (await rows('calls')).map(({ known, run: n }) => `${known} ${n}`),
    (await rows('usage_days')).reduce((sum, day) => sum + Number(day.lost), 0),
  ];

  it('goes, with its share of the day, when rows of its own or its end come', async () => {
    await write({ calls: [lostRun(), lostRun({ run: 2 }), lostRun({ run: 3 })] });
    expect(await lost()).toEqual([['lost 1', 'lost 2', 'lost 3'], 3]);
    await write({ calls: [callRow()], ended: [run(2)] });
    expect(await lost()).toEqual([['told 1', 'lost 3'], 1]);
  });

  it('is not added where its run has rows, or ends in the same batch', async () => {
    await write({ calls: [callRow()] });
    await write({
      calls: [lostRun(), lostRun({ run: 2 }), lostRun({ run: 3 }), callRow({ run: 3 })],
      ended: [run(2)],
    });
    expect(await lost()).toEqual([['told 1', 'told 3'], 0]);
  });

  it('goes once when two writers have rows of its own at the same time', async () => {
    await write({ calls: [lostRun()] });
    await Promise.all([write({ calls: [callRow()] }), write({ calls: [callRow()] }, other)]);
    expect(await lost()).toEqual([['told 1'], 0]);
  });
});

describe('a request', () => {
  const result = async () =>
    (await rows('requests')).map(({ result, attempt, run: n, answered_model }) => [
      result,
      attempt,
      n,
      answered_model,
    ]);

  it('ends as its greatest attempt and run did, in whatever order they come', async () => {
    for (const end of [
      requestEnd({ attempt: 1, run: 2, code: 'provider_error', model: 'x' }),
      requestEnd({ attempt: 2, run: 1, code: 'ok', model: 'y' }),
      requestEnd({ attempt: 1, run: 3, code: 'internal', model: 'z' }),
    ])
      await write({ requests: [requestRow({ end })] });
    expect(await result()).toEqual([['ok', 2, 1, 'y']]);
    await write({ requests: [requestRow({ end: requestEnd({ attempt: 2, code: 'truncated' }) })] });
    expect(await result()).toEqual([['truncated', 2, 1, null]]);
  });

  it('ends as its caller was told first, and when', async () => {
    await write({ requests: [requestRow({ left: { code: 'cancelled', at: noon - 1000 } })] });
    await write({ requests: [requestRow({ left: { code: 'timeout', at: noon }, end: requestEnd() })] });
    expect(await rows('requests')).toMatchObject([
      {
        result: 'cancelled',
        code: 'ok',
        ended_at: '2026-12-01 11:59:59+00',
        worked_until: '2026-12-01 12:00:00+00',
      },
    ]);
  });

  it('is of whom the first entry says', async () => {
    await write({ requests: [requestRow({ origin: { model: 'first' } })] });
    await write({ requests: [requestRow({ origin: { model: 'second', user: 'else' }, joins: 'b' })] });
    expect(await rows('requests')).toMatchObject([
      { user_name: 'ann', model: 'first', joins: 'b', ended_at: null },
    ]);
  });
});

describe('what cannot be', () => {
  it('is a count of 0, at an unknown cost', async () => {
    for (const [call, count] of [-1, Number.NaN, 1e300, 0.5].entries())
      await write({ calls: [callRow({ call: call + 1, tokens: { cached: count } })] });
    expect(await rows('calls')).toHaveLength(4);
    expect(await rows('usage_days')).toMatchObject([
      { input: '400', cached: '0', unpriced: '4', cost_nanos: '0' },
    ]);
  });

  it.each(['\0', '\ud800'])('is a text with %j -> refused, and nothing is written', async (text) => {
    const writing = write({ requests: [requestRow()], calls: [callRow(), callRow({ call: 2, type: text })] });
    await expect(writing).rejects.not.toMatchObject({ code: 'database_unavailable' });
    expect(await all()).toEqual([[], [], []]);
  });
});
