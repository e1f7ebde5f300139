import type { Prices } from '../../shared/prices/prices.js';
import type { Database } from '../database/client.js';
import { sql } from '../database/drizzle.js';
import { calls, usageDays } from '../schema.js';
import { pricedOf } from './rows.js';
import { dayKey, listOf, named } from './sums.js';
import { toRecords } from './write.js';

type Ledger = Pick<Database, 'run'>;
type Call = typeof calls.$inferSelect;

const dayMs = 86_400_000;
const chatsAtOnce = 1000;

/**
 * Gives the calls since the start of a UTC day that have no known cost one by these prices, and adds it to their days;
 * a cost that is known stays. Gives how many got one. Throws `database_unavailable`.
 */
export async function repriceCalls(
  database: Ledger,
  { from, prices }: { from: string; prices: Pick<Prices, 'costOf'> },
): Promise<number> {
  let priced = 0;
  // A worker's clock may be in the next day already.
  for (let day = Date.parse(from); day <= Date.now() + dayMs; day += dayMs)
    for (let after: string | undefined = ''; after !== undefined; ) {
      const found: Call[] = await unpricedOf(database, { day: new Date(day).toISOString(), after });
      priced += await writeCosts(
        database,
        found.flatMap((call) => {
          const cost = prices.costOf(pricedOf(call));
          return cost.nanoDollars === undefined
            ? []
            : { ...call, costNanos: Number(cost.nanoDollars), priceDated: cost.dated };
        }),
      );
      after = found.at(-1)?.chat;
    }
  return priced;
}

/** The calls of a day that have no known cost, of the next thousand chats. */
async function unpricedOf(database: Ledger, { day, after }: { day: string; after: string }): Promise<Call[]> {
  const isWanted = sql`ended_at >= ${day}::timestamptz and ended_at < ${day}::timestamptz + interval '1 day'
    and cost_nanos is null and known <> 'lost' and chat > ${after}`;
  const chats = sql`select distinct chat from ${calls} where ${isWanted} order by chat limit ${chatsAtOnce}`;
  return database.run((db) =>
    db.select().from(calls).where(sql`${isWanted} and chat in (${chats})`).orderBy(calls.chat),
  );
}

async function writeCosts(database: Ledger, costs: readonly object[]): Promise<number> {
  const keyOf = (table: string, columns: readonly string[]) => listOf(columns, (name) => `${table}.${name}`);
  const days = Object.keys(dayKey);
  const key = ['chat', 'attempt', 'added_at', 'run', 'started_at', 'call'];
  const [row] = await database.run((db) =>
    db.execute<{ priced: number }>(sql`
      with priced as (
        update ${calls} as made set cost_nanos = given.cost_nanos, price_dated = given.price_dated
        from jsonb_populate_recordset(null::${calls}, ${toRecords(calls, costs)}::jsonb) as given
        where (${keyOf('made', key)}) = (${keyOf('given', key)}) and made.cost_nanos is null
        returning made.*
      ), summed as (
        update ${usageDays} as known_day
        set cost_nanos = known_day.cost_nanos + added.nanos, unpriced = known_day.unpriced - added.calls
        from (select ${named(dayKey)}, sum(cost_nanos) as nanos, count(*) as calls from priced group by 1, 2, 3, 4, 5, 6)
          as added
        where (${keyOf('known_day', days)}) = (${keyOf('added', days)})
      )
      select count(*)::int as priced from priced`),
  );
  return row?.priced ?? 0;
}
