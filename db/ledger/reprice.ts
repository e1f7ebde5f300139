import type { Prices } from '../../shared/prices/prices.js';
import type { Database } from '../database/client.js';
import { and, asc, isNull, sql } from '../database/drizzle.js';
import { calls, usageDays } from '../schema.js';
import { dayKey, listOf, named } from './sums.js';

const callsAtOnce = 2000;
const key = ['chat', 'attempt', 'added_at', 'run', 'start', 'call'];

/**
 * Gives the calls since the start of a UTC day that have no known cost one by these prices, and adds it to their days;
 * a cost that is known stays. Gives how many got one. Throws `database_unavailable`.
 */
export async function repriceCalls(
  database: Pick<Database, 'run'>,
  { from, prices }: { from: string; prices: Pick<Prices, 'costOf'> },
): Promise<number> {
  let priced = 0;
  // A worker's clock may be in the next day already.
  const last = dayAfter(new Date().toISOString().slice(0, 10));
  for (let day = from; day <= last; day = dayAfter(day))
    for (let after: unknown[] | undefined = []; after !== undefined; ) {
      const found = await unpricedOf(database, day, after);
      priced += await writeCosts(
        database,
        found.flatMap((row) => costOf(row, prices) ?? []),
      );
      const end = found.length === callsAtOnce ? found.at(-1) : undefined;
      after = end && [end.chat, end.attempt, end.addedAt.toISOString(), end.run, end.start, end.call];
    }
  return priced;
}

const dayAfter = (day: string): string => new Date(Date.parse(day) + 86_400_000).toISOString().slice(0, 10);

type Call = typeof calls.$inferSelect;

/** Behind this key, in its order. */
function unpricedOf(
  database: Pick<Database, 'run'>,
  day: string,
  after: readonly unknown[],
): PromiseLike<Call[]> {
  const place = sql.join(
    after.map((value) => sql`${value}`),
    sql`, `,
  );
  const isAfter = after.length > 0 ? sql`(${listOf(key, String)}) > (${place})` : undefined;
  const isOfDay = sql`ended_at >= ${day}::date and ended_at < ${day}::date + 1`;
  const { chat, attempt, addedAt, run, start, call } = calls;
  return database.run((db) =>
    db
      .select()
      .from(calls)
      .where(and(isOfDay, isNull(calls.costNanos), sql`known <> 'lost'`, isAfter))
      .orderBy(...[chat, attempt, addedAt, run, start, call].map((column) => asc(column)))
      .limit(callsAtOnce),
  );
}

/** The key of a call with its cost, as the columns have them; undefined while it is unknown. */
function costOf(row: Call, prices: Pick<Prices, 'costOf'>) {
  const { chat, attempt, addedAt, run, start, call, provider, answeredModel, model, tier, requests } = row;
  const { input, cached, written, writtenFor1h, output, thinking } = row;
  const cost = prices.costOf({
    ...{ provider, model: answeredModel ?? model ?? '', tier: tier ?? undefined, at: row.endedAt, requests },
    tokens: {
      ...{ input: Number(input), cached: Number(cached), written: Number(written) },
      ...{ writtenFor1h: Number(writtenFor1h), output: Number(output), thinking: Number(thinking) },
    },
  });
  if (cost.nanoDollars === undefined) return undefined;
  return {
    ...{ chat, attempt, added_at: addedAt.toISOString(), run, start, call },
    ...{ cost_nanos: cost.nanoDollars.toString(), price_dated: cost.dated },
  };
}

async function writeCosts(database: Pick<Database, 'run'>, costs: readonly object[]): Promise<number> {
  const keyOf = (table: string, columns: readonly string[]) => listOf(columns, (name) => `${table}.${name}`);
  const days = Object.keys(dayKey);
  const [row] = await database.run((db) =>
    db.execute<{ priced: number }>(sql`
      with priced as (
        update ${calls} as made set cost_nanos = given.cost_nanos, price_dated = given.price_dated
        from jsonb_populate_recordset(null::${calls}, ${JSON.stringify(costs)}::jsonb) as given
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
