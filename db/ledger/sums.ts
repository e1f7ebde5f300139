import { goodResults, type TokenCounts } from '../../shared/contracts/ledger.js';
import { type SQL, sql } from '../database/drizzle.js';

/** How each call or lost run adds to the columns of `usage_days`, by their names. */
export const summands = {
  calls: "(known <> 'lost')::int",
  failed: `(coalesce(code, 'ok') not in ('${goodResults.join("', '")}'))::int`,
  estimated: "(known = 'estimated')::int",
  lost: "(known = 'lost')::int",
  unpriced: "(known <> 'lost' and cost_nanos is null)::int",
  input: 'input',
  cached: 'cached',
  written: 'written',
  written_for_1h: 'written_for_1h',
  output: 'output',
  thinking: 'thinking',
  cost_nanos: 'coalesce(cost_nanos, 0)',
};

/** The names of the columns that are sums. */
export const sumColumns = Object.keys(summands);

/** The key of `usage_days` that a call belongs to, by the names of its columns. */
export const dayKey = {
  day: "(ended_at at time zone 'UTC')::date",
  user_id: 'user_id',
  token_id: "coalesce(token_id, '')",
  provider: 'provider',
  // An unconfirmed name must not add a row for ever.
  model:
    "case when input + output > 0 then coalesce(answered_model, case known when 'told' then model end, '') else '' end",
  api: 'api',
};

/** A statement's part for each of these, with commas between. */
export const listOf = <T>(items: readonly T[], write: (item: T) => string): SQL =>
  sql.raw(items.map((item) => write(item)).join(', '));

/** Expressions under their names. */
export const named = (expressions: Readonly<Record<string, string>>): SQL =>
  listOf(Object.entries(expressions), ([name, expression]) => `${expression} as ${name}`);

/** Sums of calls or days, as `sumsOf` gives them; the cost is in dollars, of the calls whose cost is known. */
export interface Sums {
  calls: number;
  failed: number;
  estimated: number;
  unpriced: number;
  lost: number;
  tokens: TokenCounts;
  /** Null where there are calls or lost runs, and no call has a known cost. */
  cost: number | null;
}

/** The sums over rows of `calls`, or of `usage_days`. */
export function sumsOf(table: 'calls' | 'days'): SQL<Sums> {
  const sum = (column: keyof typeof summands) =>
    `coalesce(sum(${table === 'days' ? column : summands[column]}), 0)`;
  const sumsAs = (columns: Record<string, keyof typeof summands>) =>
    Object.entries(columns).map(([key, column]) => `'${key}', ${sum(column)}`);
  const counts = ['calls', 'failed', 'estimated', 'unpriced', 'lost'] as const;
  const own = sumsAs(Object.fromEntries(counts.map((name) => [name, name])));
  const tokens = sumsAs({
    input: 'input',
    cached: 'cached',
    written: 'written',
    writtenFor1h: 'written_for_1h',
    output: 'output',
    thinking: 'thinking',
  });
  const isKnown = `${sum('calls')} > ${sum('unpriced')} or ${sum('calls')} + ${sum('lost')} = 0`;
  return sql`json_build_object(${sql.raw(own.join())}, 'tokens', json_build_object(${sql.raw(tokens.join())}),
    'cost', ${sql.raw(`case when ${isKnown} then ${sum('cost_nanos')} end`)}::float8 / 1e9)`;
}
