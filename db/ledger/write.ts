import type { ProviderId } from '../../shared/contracts/contract.js';
import type { Database } from '../database/client.js';
import { getTableColumns, sql } from '../database/drizzle.js';
import { calls, requests, usageDays } from '../schema.js';
import type { CallRow, LedgerBatch } from './rows.js';
import { dayKey, listOf, named, sumColumns, summands } from './sums.js';

/**
 * Writes the rows in one statement, as often as one likes: what is there already adds nothing. Each table is written in
 * the order of its keys, so that two writers do not wait for each other in a circle.
 * 1. Requests keep what they were, and get the end of their greatest attempt and run.
 * 2. Calls are added. A lost run is not, where the run has rows of its own or has ended.
 * 3. Lost runs go whose own rows or ends are among these.
 * 4. The days get what 2 has added, less what 3 has removed.
 *
 * Gives the known cost of the added calls by provider, in nano-dollars. Throws `database_unavailable`, and PostgreSQL's
 * own error for a value that it refuses; then nothing is written.
 */
export async function writeLedger(
  database: Pick<Database, 'run'>,
  batch: LedgerBatch,
): Promise<Map<ProviderId, bigint>> {
  const rows = await database.run(
    (db) =>
      db.execute<{ provider: ProviderId; nanos: string }>(sql`
      with given as (
        select * from json_populate_recordset(null::${calls}, ${toRecords(calls, batch.calls.map(possible))}::json)
      ), own as (
        select ${runOf()} from json_to_recordset(${toRecords(calls, batch.ended)}::json)
          as ended (chat text, attempt integer, added_at timestamptz, run integer)
        union select ${runOf()} from given where known <> 'lost'
      ), recorded as (
        insert into ${requests} as request (${listOf(requestColumns, String)})
        select ${listOf(requestColumns, String)}
        from json_populate_recordset(null::${requests}, ${toRecords(requests, batch.requests)}::json)
        order by chat
        on conflict (chat) do update set ${listOf(endColumns, (name) => `${name} = case when ${isNewer} then excluded.${name} else request.${name} end`)},
          ${listOf(onceColumns, (name) => `${name} = coalesce(request.${name}, excluded.${name})`)}
      ), inserted as (
        insert into ${calls} as known_call select * from given
        where known <> 'lost'
          or not exists (select from own where (${runOf('own')}) = (${runOf('given')}))
          and (select true from ${calls} as earlier where (${runOf('earlier')}) = (${runOf('given')}) limit 1) is null
        order by chat, attempt, added_at, run, started_at, call
        on conflict do nothing returning *
      ), displaced as (
        delete from ${calls} as lost_run using own
        where (${runOf('lost_run')}) = (${runOf('own')}) and known = 'lost' returning lost_run.*
      ), summed as (
        insert into ${usageDays} as known_day (${listOf(Object.keys(dayKey), String)}, user_name, ${listOf(sumColumns, String)})
        select ${named(dayKey)}, max(user_name), ${listOf(Object.values(summands), (each) => `sum(sign * ${each})`)}
        from (select 1 as sign, * from inserted union all select -1, * from displaced) as change
        group by 1, 2, 3, 4, 5, 6
        order by 1, 2, 3, 4, 5, 6
        on conflict (${listOf(Object.keys(dayKey), String)}) do update set
          user_name = coalesce(excluded.user_name, known_day.user_name),
          ${listOf(sumColumns, (name) => `${name} = known_day.${name} + excluded.${name}`)}
      )
      select provider, sum(cost_nanos)::text as nanos from inserted where cost_nanos is not null group by provider`),
    'background',
  );
  return new Map(rows.map(({ provider, nanos }) => [provider, BigInt(nanos)]));
}

/** Rows in JSON, under the names of their columns. */
export function toRecords(table: typeof calls | typeof requests, rows: readonly object[]): string {
  const columns = Object.entries(getTableColumns(table)).map(([key, { name }]) => [key, name] as const);
  // Every chat comes by here, and `JSON.stringify` takes twice as long with dates, and with what is undefined.
  const toRecord = (row: object) => {
    const record: Record<string, unknown> = {};
    for (const [key, name] of columns) {
      const value: unknown = row[key as keyof typeof row];
      if (value !== undefined) record[name] = value instanceof Date ? value.toISOString() : value;
    }
    return record;
  };
  return JSON.stringify(rows.map(toRecord));
}

/** The columns of a run, of all of its calls the same. */
const runOf = (table?: string) =>
  listOf(['chat', 'attempt', 'added_at', 'run'], (name) => (table ? `${table}.${name}` : name));

const words = (text: string): string[] => text.split(/\s+/);

const originColumns = words(
  `chat user_id user_name token_id api console session provider model streamed stored added_at`,
);
const endColumns = words(
  `attempt run code worked_until answered_provider answered_model error_status error_type error_place attempts
  waited_ms called_ms first_token_ms`,
);
/** The first entry that has them counts. */
const onceColumns = ['left_with', 'left_at', 'joins'];
const requestColumns = [...originColumns, ...endColumns, ...onceColumns];

/** Unknown, and so false, of an entry without an end. */
const isNewer =
  '(excluded.attempt, excluded.run) >= (coalesce(request.attempt, 0), coalesce(request.run, 0))';

const counts = ['requests', 'input', 'cached', 'written', 'writtenFor1h', 'output', 'thinking'] as const;
const isCount = (count: number): boolean => Number.isInteger(count) && count >= 0 && count < 2 ** 31;

/** Counts that cannot be are 0; then so is the number of requests, and the cost stays unknown for good. */
function possible(row: CallRow): CallRow {
  const wrong = counts.filter((name) => !isCount(row[name]));
  if (wrong.length === 0) return row;
  return { ...row, ...Object.fromEntries(wrong.map((name) => [name, 0])), requests: 0, costNanos: null };
}
