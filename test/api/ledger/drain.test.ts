import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { LedgerDrain, toBatch } from '../../../api/ledger/drain.js';
import { sql } from '../../../db/database/drizzle.js';
import { openPrices } from '../../../shared/prices/prices.js';
import { decodeEntry, type Entry, encodeEntry, type NewEntry } from '../../../shared/protocol/entries.js';
import type { Outbox, RecordStore } from '../../../shared/queue/queue-store.js';
import { meteredRow } from '../../support/calls.js';
import { openTestDatabase } from '../../support/database.js';
import { nameOfTest } from '../../support/entries.js';
import { createRecordingLog } from '../../support/recording-log.js';

const origin = nameOfTest();
const job = { chat: 'c', origin, attempt: 1, addedAt: 5, provider: 'openai' } as const;
const run = (own: Partial<Extract<NewEntry, { kind: 'run' }>> = {}): NewEntry => ({
  ...{ kind: 'run', ...job, run: 1, calls: [meteredRow()], ...own },
});
const lost = (runs: number): NewEntry => ({ kind: 'lost', ...job, runs });
const end = (code: string) => ({ code, endedAt: 9, provider: 'openai' as const });
const left: NewEntry = { kind: 'left', chat: 'c', origin, code: 'timeout', addedAt: 3, endedAt: 7 };

const price = () => ({ costNanos: 7, priceDated: '2026-01-01' });
/** As they cross the store. */
const batchOf = (...entries: NewEntry[]) =>
  toBatch(
    entries.map((entry) => decodeEntry(encodeEntry(entry)) as Entry),
    price,
  );
const keysOf = (...entries: NewEntry[]) =>
  batchOf(...entries).calls.map(({ run, call, known }) => `${run} ${call} ${known}`);

describe('entries become rows', () => {
  it.each<[string, NewEntry[], string[]]>([
    ['calls -> one each, numbered', [run({ calls: [meteredRow(), meteredRow()] })], ['1 1 told', '1 2 told']],
    ['the same entry twice -> once', [run(), run()], ['1 1 told']],
    ['lost runs -> one each', [lost(2)], ['1 0 lost', '2 0 lost']],
    [
      'a lost run that ended after all -> its own rows, in any order',
      [lost(2), run()],
      ['1 1 told', '2 0 lost'],
    ],
    ['a lost run that ended without a call -> none', [run({ calls: [] }), lost(1)], []],
    ['two runs -> both', [run(), run({ run: 2 })], ['1 1 told', '2 1 told']],
    [
      'a run that was taken twice, as a killed store had forgotten -> the calls of both',
      [run(), run({ calls: [meteredRow({ startedAt: 9 })] })],
      ['1 1 told', '1 1 told'],
    ],
  ])('%s', (_, entries, keys) => {
    expect(keysOf(...entries)).toEqual(keys);
    expect(keysOf(...entries.toReversed()).sort()).toEqual(keys);
  });

  it('of a run that goes on -> it has not ended, but its calls are known', () => {
    const batch = batchOf(run({ goesOn: true }));
    expect([batch.ended, batch.calls.length]).toEqual([[], 1]);
    expect(batchOf(run()).ended).toEqual([{ chat: 'c', attempt: 1, addedAt: new Date(5), run: 1 }]);
  });

  it('of one chat -> the end of its greatest attempt and run, what its caller saw, and when it came', () => {
    const timeout = { ...end('timeout'), waitedMs: 7.4, calledMs: -1 };
    const ends = [run({ end: end('ok'), run: 2 }), run({ attempt: 2, end: timeout }), run(), left];
    for (const entries of [ends, ends.toReversed()])
      expect(batchOf(...entries).requests).toMatchObject([
        {
          chat: 'c',
          addedAt: new Date(3),
          attempt: 2,
          code: 'timeout',
          waitedMs: 7,
          calledMs: 0,
          leftWith: 'timeout',
          leftAt: new Date(7),
        },
      ]);
  });

  it('of a joined request -> the chat that it was given', () => {
    const joined: NewEntry = { kind: 'joined', chat: 'b', origin, joins: 'c', endedAt: 4 };
    expect(batchOf(joined).requests).toMatchObject([{ chat: 'b', joins: 'c', addedAt: new Date(4) }]);
  });
});

describe('the drain', async () => {
  const { database, stop } = await openTestDatabase();
  afterAll(stop);
  let entries: Map<string, string>;
  let lease: { isTaken: boolean };
  let dropped: number;
  let asked: number[];
  let cost: number;
  let lines: { msg: string }[];
  let drain: LedgerDrain;
  beforeEach(async () => {
    await database.run((db) => db.execute(sql`truncate requests, calls, usage_days`));
    [entries, lease, dropped, cost, asked] = [new Map(), { isTaken: false }, 0, 0, []];
    const outbox: Outbox = {
      append: async (added) => added.forEach((entry) => void entries.set(`${entries.size}`, entry)),
      read: async ({ limit, after = '-1' }) => {
        asked.push(limit);
        const behind = [...entries].filter(([id]) => Number(id) > Number(after));
        return behind.slice(0, limit).map(([id, entry]) => ({ id, entry }));
      },
      remove: async (ids) => ids.forEach((id) => void entries.delete(id)),
      size: async () => ({ entries: entries.size, oldestAt: undefined }),
    };
    const logged = createRecordingLog();
    lines = logged.lines as typeof lines;
    const create = async () => {
      const isFree = !lease.isTaken;
      lease.isTaken = true;
      return isFree;
    };
    const inc = (add: (by: number) => void) => ({ inc: (_: object, by = 1) => add(by) });
    drain = new LedgerDrain({
      store: { outbox, now: Date.now, records: { create } as unknown as RecordStore },
      database,
      prices: openPrices({}),
      metrics: {
        cost: inc((by) => {
          cost += by;
        }),
        ledgerDropped: inc((by) => {
          dropped += by;
        }),
      },
      log: logged.log,
    });
  });
  const append = (...added: NewEntry[]) => {
    for (const entry of added) entries.set(`${entries.size}`, encodeEntry(entry));
  };
  const written = async (table: 'calls' | 'requests') =>
    [
      ...(await database.run((db) => db.execute(sql`select chat from ${sql.identifier(table)} order by 1`))),
    ].map(({ chat }) => chat);
  const priced = { model: 'gpt-4o', tokens: { ...meteredRow().tokens, input: 1_000_000, output: 0 } };

  it('moves more entries than one statement has, with their costs, and leaves none', async () => {
    for (let n = 0; n < 600; n += 1) append(run({ chat: `${n}`, calls: [meteredRow(priced)] }));
    await drain.drain();
    expect([(await written('calls')).length, entries.size]).toEqual([600, 0]);
    expect(cost).toBeCloseTo(600 * 2.5);
  });

  it('leaves what is of a newer release, and drops what nobody can read, which is counted', async () => {
    const newer = JSON.stringify({ v: 99 });
    entries.set('0', newer);
    entries.set('1', 'nonsense');
    append(run({ chat: 'readable' }));
    await drain.drain();
    expect([await written('calls'), [...entries.values()], dropped]).toEqual([['readable'], [newer], 1]);
  });

  it('meets an entry that PostgreSQL refuses → drops that one alone', async () => {
    // PostgreSQL does not read a year of six digits.
    append(run({ chat: 'a' }), run({ chat: 'b', addedAt: 8e15 }), run({ chat: 'c' }));
    await drain.drain();
    expect(await written('calls')).toEqual(['a', 'c']);
    expect([dropped, entries.size]).toEqual([1, 0]);
  });

  it('finds PostgreSQL without its tables → waits, in ever smaller batches, and then drops nothing', async () => {
    for (let n = 0; n < 600; n += 1) append(run({ chat: `${n}` }));
    await database.run((db) => db.execute(sql`alter table usage_days rename to elsewhere`));
    for (const size of [500, 250]) {
      await expect(drain.drain()).rejects.toThrow();
      expect([asked.at(-1), dropped, entries.size]).toEqual([size, 0, 600]);
    }
    await database.run((db) => db.execute(sql`alter table elsewhere rename to usage_days`));
    await drain.drain();
    expect([asked.slice(-3), dropped, entries.size]).toEqual([[125, 250, 500], 0, 0]);
  });

  it('has no lease → nothing, and everything once it is free', async () => {
    append(run());
    lease.isTaken = true;
    await drain.drain();
    expect(entries.size).toBe(1);
    lease.isTaken = false;
    await drain.drain();
    expect(entries.size).toBe(0);
  });

  it('has a model without a price → an unknown cost, and one warning', async () => {
    append(
      run({ calls: ['none', 'none', undefined].map((answered) => meteredRow({ model: 'none', answered })) }),
    );
    await drain.drain();
    const costs = await database.run((db) => db.execute(sql`select cost_nanos from calls`));
    expect([...costs].map(({ cost_nanos }) => cost_nanos)).toEqual([null, null, null]);
    expect(lines.map(({ msg }) => msg)).toEqual(['the cost of a call is unknown']);
  });
});
