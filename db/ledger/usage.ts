import type { ProviderId } from '../../shared/contracts/contract.js';
import type { Usage, UsageRow } from '../../shared/contracts/ledger.js';
import { givenFields } from '../../shared/json/json.js';
import { invalid } from '../../shared/validation.js';
import type { Database } from '../database/client.js';
import { type SQL, sql } from '../database/drizzle.js';
import { calls, tokens, usageDays } from '../schema.js';
import { tokenIds, userIds } from './names.js';
import { dayKey, listOf, named, type Sums, sumColumns, sumsOf } from './sums.js';

/** The keys that sums may be given by. */
export const usageKeys = ['day', 'provider', 'model', 'user', 'token', 'api', 'session'] as const;
export type UsageKey = (typeof usageKeys)[number];

/** Which calls are summed; conditions that are absent hold for every one. */
export interface UsageFilter {
  /** The first and the last day, in UTC. */
  readonly from: string;
  readonly to: string;
  readonly by: readonly UsageKey[];
  /** Name of the user, or id; so is the token. */
  readonly user?: string | undefined;
  readonly token?: string | undefined;
  readonly provider?: ProviderId | undefined;
  readonly model?: string | undefined;
  readonly api?: string | undefined;
  readonly session?: string | undefined;
}

const dayMs = 86_400_000;
const toDay = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

/** The first and the last day: thirty days to today, or to the last one, unless both are given. */
export function daysOf({
  from,
  to = toDay(Date.now()),
}: {
  from?: string | undefined;
  to?: string | undefined;
}) {
  return { from: from ?? toDay(Date.parse(to) - 29 * dayMs), to };
}

const maxDays = 400;
/** The days keep no sessions: these are read from the calls. */
const maxSessionDays = 31;
const maxRows = 10_000;
const maxUnknown = 100;

/** Sums, and the models in them without a known price. Throws as `readSums`. */
export async function readUsage(database: Pick<Database, 'run'>, filter: UsageFilter): Promise<Usage> {
  const sums = await readSums(database, filter);
  const [unknown, [{ since } = { since: null }]] = await Promise.all([
    database.run((db) => db.execute<UnknownModel>(unknownModels(summedBy(filter)))),
    database.run((db) =>
      db.select({ since: sql<string | null>`min(${usageDays.day})::text` }).from(usageDays),
    ),
  ]);
  return { ...sums, since, unknownModels: [...unknown].map((model) => ({ ...model, line: lineOf(model) })) };
}

/**
 * Sums by up to two keys: by day in their order, else the dearest first. Throws `invalid_request` for more than 400
 * days, or 31 by session, and for more than 10,000 rows; and `database_unavailable`.
 */
export async function readSums(
  database: Pick<Database, 'run'>,
  filter: UsageFilter,
): Promise<Pick<Usage, 'from' | 'to' | 'rows' | 'total'>> {
  const { from, to, by } = filter;
  const days = (Date.parse(to) - Date.parse(from)) / dayMs + 1;
  if (days < 1) throw invalid('to', 'must not be before from');
  const ofCalls = isOfCalls(filter);
  const most = ofCalls ? maxSessionDays : maxDays;
  if (days > most)
    throw invalid('from', `must be at most ${most} days before the end${ofCalls ? ', by session' : ''}`);
  const rows = await database.run((db) => db.execute<FoundRow>(sumsBy(by, summedBy(filter))));
  if (rows.length > maxRows + 1)
    throw invalid('by', `gives more than ${maxRows} rows: sum fewer days, or by one`);
  const total = rows.find(({ isTotal }) => isTotal)?.sums ?? noSums;
  const found = rows.filter((row) => !row.isTotal && row.sums.calls + row.sums.lost > 0);
  return {
    from,
    to,
    total,
    rows: found.map((row) => toRow(row, by)),
  };
}

/** Whether the days cannot say it. */
const isOfCalls = ({ by, session }: UsageFilter): boolean => by.includes('session') || session !== undefined;

const summedBy = (filter: UsageFilter): Summed =>
  isOfCalls(filter)
    ? { source: fromCalls(filter), sums: sumsOf('calls') }
    : { source: fromDays(filter), sums: sumsOf('days') };

/** A row for a table without rows in its cells. */
export const toFlatRow = ({ tokens, cost, ...row }: UsageRow) => ({ ...row, ...tokens, cost });

const noTokens = { input: 0, cached: 0, written: 0, writtenFor1h: 0, output: 0, thinking: 0 };
const noSums: Sums = { calls: 0, failed: 0, estimated: 0, unpriced: 0, lost: 0, tokens: noTokens, cost: 0 };

interface Summed {
  /** A query's FROM and WHERE. */
  readonly source: SQL;
  readonly sums: SQL<Sums>;
}

interface FoundRow extends Record<string, unknown> {
  readonly isTotal: boolean;
  readonly sums: Sums;
  readonly day?: string;
  readonly provider?: ProviderId;
  readonly model?: string;
  readonly user_id?: string;
  readonly user_name: string | null;
  readonly token_id?: string;
  readonly token_name?: string | null;
  readonly api?: string;
  readonly session?: string;
}

interface UnknownModel extends Record<string, unknown> {
  readonly provider: ProviderId;
  readonly model: string;
  readonly calls: number;
}

const columnOf = (key: UsageKey): string => (key === 'user' || key === 'token' ? `${key}_id` : key);

/** The sums by these keys, and that of all. */
function sumsBy(by: readonly UsageKey[], { source, sums }: Summed): SQL {
  const columns = by.map(columnOf);
  const read = columns.map((column) => (column === 'day' ? 'day::text, ' : `${column}, `)).join('');
  const order = by.includes('day') ? 'summed.day, ' : '';
  const withToken = by.includes('token')
    ? sql`left join ${tokens} as token on token.id::text = summed.token_id`
    : sql``;
  return sql`
    select summed.*${sql.raw(by.includes('token') ? ', token.name as token_name' : '')} from (
      select ${sql.raw(read)} max(user_name) as user_name, ${sums} as sums,
        ${sql.raw(columns[0] === undefined ? 'true' : `grouping(${columns[0]}) = 1`)} as "isTotal"
      ${source} group by grouping sets ((${sql.raw(columns.join())})${sql.raw(columns.length > 0 ? ', ()' : '')})
    ) as summed ${withToken}
    order by "isTotal" desc, ${sql.raw(order)} (sums->>'cost')::float8 desc nulls last limit ${maxRows + 2}`;
}

const unknownModels = ({ source, sums }: Summed): SQL => sql`
  select provider, model, (sums->>'unpriced')::int as calls from (
    select provider, model, ${sums} as sums ${source} and model <> '' group by provider, model
  ) as summed where (sums->>'unpriced')::int > 0 order by 3 desc limit ${maxUnknown}`;

const fromDays = ({ from, to, ...filter }: UsageFilter): SQL =>
  sql`from ${usageDays} where day between ${from} and ${to} ${conditionsOf(filter)}`;

/** The calls with the keys of their days. */
function fromCalls({ from, to, ...filter }: UsageFilter): SQL {
  const others = ['user_name', 'known', 'code', ...sumColumns.filter((name) => !countColumns.has(name))];
  return sql`from (
      select ${named({ ...dayKey, session: "coalesce(session, '')" })}, ${listOf(others, String)} from ${calls}
      where ended_at >= ${from}::date and ended_at < ${to}::date + 1
    ) as made where true ${conditionsOf(filter)}`;
}

/** Columns that the calls do not have. */
const countColumns: ReadonlySet<string> = new Set(['calls', 'failed', 'estimated', 'lost', 'unpriced']);

function conditionsOf({ user, token, provider, model, api, session }: Partial<UsageFilter>): SQL {
  const equal = Object.entries(givenFields({ provider, model, api, session })).map(
    ([column, value]) => sql`and ${sql.raw(column)} = ${value}`,
  );
  const ofUser = user === undefined ? sql`` : sql`and user_id in (${userIds(user)})`;
  const ofToken = token === undefined ? sql`` : sql`and token_id in (${tokenIds(token)})`;
  return sql.join([...equal, ofUser, ofToken], sql` `);
}

function toRow(
  { sums, user_id, user_name, token_id, token_name, ...row }: FoundRow,
  by: readonly UsageKey[],
): UsageRow {
  const { day, provider, model, api, session } = row;
  return {
    ...givenFields({ day, provider, model, api, session }),
    ...(by.includes('user') && { user: user_name ?? user_id ?? '', userId: user_id ?? '' }),
    ...(by.includes('token') && { token: token_name ?? token_id ?? '', tokenId: token_id ?? '' }),
    ...sums,
  };
}

/** For `PRICES_FILE`, to be completed: a number that is missing is no price. */
const lineOf = ({ provider, model }: UnknownModel): string =>
  `${JSON.stringify({ provider, id: model }).slice(0, -1)},"input": ,"cached": ,"output": }`;
