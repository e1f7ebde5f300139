import type { ProviderId } from '../../shared/contracts/contract.js';
import type { ProviderError } from '../../shared/contracts/history.js';
import {
  goodResults,
  type LedgerAttempt,
  type LedgerCall,
  type LedgerRequest,
  type RequestCode,
  type RequestDetails,
  type RequestPage,
  type TokenCounts,
} from '../../shared/contracts/ledger.js';
import type { Database } from '../database/client.js';
import type { Drizzle } from '../database/connections.js';
import { and, asc, desc, eq, type SQL, sql } from '../database/drizzle.js';
import { calls, isFailed, requests, tokens } from '../schema.js';
import { tokenIds, userIds } from './names.js';
import { type Sums, sumsOf } from './sums.js';

/** Which requests are wanted; conditions that are absent hold for every one. */
export interface RequestFilter {
  readonly id?: string | undefined;
  /** The provider's id of one of its calls. */
  readonly providerRequestId?: string | undefined;
  /** Name of the user, or id. */
  readonly user?: string | undefined;
  /** Name of the access token, or id. */
  readonly token?: string | undefined;
  /** Asked or answering; so is the model. */
  readonly provider?: ProviderId | undefined;
  readonly model?: string | undefined;
  /** `failed` stands for every failure. */
  readonly result?: RequestCode | 'failed' | undefined;
  readonly api?: string | undefined;
  readonly session?: string | undefined;
  /** When they ended: from this time to before that. */
  readonly from?: Date | undefined;
  readonly to?: Date | undefined;
  /** Where to continue: `next` of the page before. */
  readonly before?: string | undefined;
  readonly limit: number;
}

type Ledger = Pick<Database, 'run'>;

/** The time that a filter without an index looks through. */
const windowMs = 7 * 86_400_000;

/**
 * A page of the requests that have ended, the last first. With a filter that has no index it may be short, or empty,
 * and still have a `next`. Throws `database_unavailable`, as all here.
 */
export async function listRequests(database: Ledger, filter: RequestFilter): Promise<RequestPage> {
  const { limit, from, to } = filter;
  const before = readCursor(filter.before);
  const until = Math.min(before?.at ?? Number.POSITIVE_INFINITY, to?.getTime() ?? Date.now());
  const windowStart = isIndexed(filter) ? undefined : until - windowMs;
  const [found, [{ first } = { first: null }]] = await Promise.all([
    database.run((db) => selectRequests(db, chatsOf(filter, { before, windowStart }))),
    database.run((db) => db.select({ first: sql<string | null>`min(${requests.endedAt})` }).from(requests)),
  ]);
  const since = first === null ? null : new Date(first);
  const earliest = Math.max(from?.getTime() ?? 0, since?.getTime() ?? Number.POSITIVE_INFINITY);
  const further = windowStart !== undefined && windowStart > earliest ? `${windowStart}.` : null;
  const last = found.length > limit ? found[limit - 1]?.request : undefined;
  return {
    data: found.slice(0, limit).map(toRequest),
    next: last ? `${last.endedAt?.getTime()}.${last.chat}` : further,
    since: since?.toISOString() ?? null,
  };
}

/** Whether the wanted rows are all there are, or few that an index finds. */
function isIndexed({ id, providerRequestId, session, result, ...others }: RequestFilter): boolean {
  if ((id ?? providerRequestId ?? session) !== undefined) return true;
  const isPlain = (others.token ?? others.provider ?? others.model ?? others.api) === undefined;
  return isPlain && (result === undefined || result === 'failed');
}

interface Cursor {
  readonly at: number;
  readonly chat: string;
}

function readCursor(text: string | undefined): Cursor | undefined {
  const [, at, chat = ''] = /^(\d+)\.(.*)$/.exec(text ?? '') ?? [];
  return at === undefined ? undefined : { at: Number(at), chat };
}

interface Place {
  readonly before: Cursor | undefined;
  readonly windowStart: number | undefined;
}

/** The ids of the page, and of one request more: each user's index gives the last, of which these are the last. */
function chatsOf(filter: RequestFilter, place: Place): SQL {
  const { user, limit } = filter;
  const newest = (condition: SQL | undefined) =>
    sql`select chat, ended_at from ${requests} where ${and(...conditionsOf(filter, place), condition)}
      order by ended_at desc, chat desc limit ${limit + 1}`;
  if (user === undefined) return sql`select chat from (${newest(undefined)}) as page`;
  return sql`select page.chat from (${userIds(user)}) as wanted (id)
    cross join lateral (${newest(sql`user_id = wanted.id`)}) as page
    order by page.ended_at desc, page.chat desc limit ${limit + 1}`;
}

function conditionsOf(filter: RequestFilter, { before, windowStart }: Place): (SQL | undefined)[] {
  const { id, providerRequestId, token, provider, model, result, api, session, from, to } = filter;
  const given = <T>(value: T | undefined, condition: (value: T) => SQL) =>
    value === undefined ? undefined : condition(value);
  return [
    sql`ended_at is not null`,
    given(id, (value) => sql`chat = ${toChatId(value)}`),
    given(providerRequestId, (value) => sql`chat in (select chat from ${calls} where request_id = ${value})`),
    given(token, (value) => sql`token_id in (${tokenIds(value)})`),
    given(provider, (value) => sql`${value} in (provider, answered_provider)`),
    given(model, (value) => sql`${value} in (model, answered_model)`),
    given(result, (value) => (value === 'failed' ? isFailed : sql`result = ${value}`)),
    result === undefined || goodResults.some((good) => good === result) ? undefined : isFailed,
    given(api, (value) => sql`api = ${value}`),
    given(session, (value) => sql`session = ${value}`),
    given(from, (value) => sql`ended_at >= ${at(value.getTime())}`),
    given(to, (value) => sql`ended_at < ${at(value.getTime())}`),
    given(before, (value) => sql`(ended_at, chat) < (${at(value.at)}, ${value.chat})`),
    given(windowStart, (value) => sql`ended_at >= ${at(value)}`),
  ];
}

const at = (ms: number): SQL => sql`to_timestamp(${ms}::float8 / 1000)`;

/** The id of a chat, by what a caller knows: completions have a prefix. */
export const toChatId = (id: string): string => id.replace(/^(chatcmpl-|msg_)/, '').toLowerCase();

/** The requests of these chats with the sums of their calls, the last that ended first. */
const selectRequests = (db: Drizzle, chats: SQL) =>
  db
    .select({
      request: requests,
      sums: sql<Sums>`(select ${sumsOf('calls')} from ${calls} where ${calls.chat} = ${requests.chat})`,
      tokenName: tokens.name,
    })
    .from(requests)
    .leftJoin(tokens, sql`${tokens.id}::text = ${requests.tokenId}`)
    .where(sql`${requests.chat} in (${chats})`)
    .orderBy(desc(requests.endedAt), desc(requests.chat));

interface RequestAndSums {
  readonly request: typeof requests.$inferSelect;
  readonly sums: Sums;
  readonly tokenName: string | null;
}

function toRequest({ request, sums, tokenName }: RequestAndSums): LedgerRequest {
  const { userId, userName, tokenId, addedAt, endedAt, errorStatus, errorType, errorPlace } = request;
  const isUnknown = sums.unpriced > 0 || request.workedUntil === null;
  const ended = endedAt ?? addedAt;
  return {
    id: request.chat,
    user: userName ?? userId,
    userId,
    token: tokenId,
    tokenName,
    api: request.api,
    console: request.console,
    session: request.session,
    provider: request.provider,
    model: request.model,
    answeredProvider: request.answeredProvider,
    answeredModel: request.answeredModel,
    streamed: request.streamed,
    stored: request.stored,
    result: (request.result ?? 'internal') as RequestCode,
    error: toError({ status: errorStatus, type: errorType, place: errorPlace }),
    addedAt: addedAt.toISOString(),
    endedAt: ended.toISOString(),
    waitedMs: request.waitedMs,
    calledMs: request.calledMs,
    firstTokenMs: request.firstTokenMs,
    totalMs: Math.max(0, ended.getTime() - addedAt.getTime()),
    calls: sums.calls,
    estimated: sums.estimated,
    lost: sums.lost,
    tokens: sums.tokens,
    cost: isUnknown ? null : sums.cost,
  };
}

type Nullable<T> = { readonly [key in keyof T]?: T[key] | null };

function toError({ status, type, place }: Nullable<ProviderError> = {}): ProviderError | null {
  const given = { ...(status && { status }), ...(type && { type }), ...(place && { place }) };
  return Object.keys(given).length > 0 ? given : null;
}

/** A request by its id, or what it was given. */
export interface FoundRequest {
  /** The id of the chat: another than that of a request that was given its reply. */
  readonly chat: string;
  /** Undefined while it has not ended. */
  readonly ended: RequestDetails | undefined;
}

/** Finds a request by the id of its chat or its completion. One that was given the chat of another is that chat. */
export async function findRequest(database: Ledger, id: string): Promise<FoundRequest> {
  const asked = toChatId(id);
  const isAsked = sql`from ${requests} as asked where asked.chat = ${asked}`;
  const chats = sql`select asked.chat ${isAsked} union select asked.joins ${isAsked}`;
  const [found, made] = await Promise.all([
    database.run((db) => selectRequests(db, chats)),
    database.run((db) => {
      const { attempt, addedAt, run, startedAt, call } = calls;
      const inOrder = [attempt, addedAt, run, startedAt, call].map((column) => asc(column));
      return db
        .select()
        .from(calls)
        .where(sql`${calls.chat} in (${chats})`)
        .orderBy(...inOrder);
    }),
  ]);
  const chat = found.find(({ request }) => request.chat === asked)?.request.joins ?? asked;
  const row = found.find(({ request }) => request.chat === chat);
  if (!row?.request.endedAt) return { chat, ended: undefined };
  const ended = {
    state: 'ended' as const,
    askedFor: chat === asked ? null : asked,
    request: toRequest(row),
    attempts: attemptsOf(row.request),
    calls: made.filter((call) => call.chat === chat).map(toCall),
    job: null,
  };
  return { chat, ended };
}

/**
 * The cost of a chat, in dollars; undefined while a call of it has no known cost, or no worker has told its end. Throws
 * `database_unavailable`.
 */
export async function readCost(database: Ledger, chat: string): Promise<number | undefined> {
  const isKnown = sql`count(*) = count(${calls.costNanos})`;
  const cost = sql<number | null>`case when ${isKnown} then sum(${calls.costNanos})::float8 / 1e9 end`;
  const [row] = await database.run((db) =>
    db
      .select({ cost })
      .from(calls)
      .innerJoin(requests, eq(requests.chat, calls.chat))
      .where(sql`${requests.chat} = ${chat} and ${requests.workedUntil} is not null`),
  );
  return row?.cost ?? undefined;
}

/** The request's own columns say all of a single attempt. */
function attemptsOf(request: RequestAndSums['request']): LedgerAttempt[] {
  const { attempts, answeredProvider: provider, answeredModel: model, code } = request;
  const { errorStatus: status, errorType: type, errorPlace: place } = request;
  if (provider === null || code === null) return [];
  const only = { provider, model, code, error: { status, type, place } };
  const all = (attempts as (typeof only)[] | null) ?? [only];
  return all.map((each) => ({ ...each, model: each.model ?? null, error: toError(each.error) }));
}

function toCall(row: typeof calls.$inferSelect): LedgerCall {
  const { input, cached, written, writtenFor1h, output, thinking } = row;
  const counts = Object.entries({ input, cached, written, writtenFor1h, output, thinking });
  return {
    attempt: row.attempt,
    run: row.run,
    call: row.call,
    kind: row.kind as LedgerCall['kind'],
    provider: row.provider,
    model: row.model,
    answeredModel: row.answeredModel,
    startedAt: row.startedAt.toISOString(),
    endedAt: row.endedAt.toISOString(),
    known: row.known as LedgerCall['known'],
    code: row.code,
    status: row.status,
    type: row.type,
    requests: row.requests,
    tokens: Object.fromEntries(
      counts.map(([kind, count]) => [kind, Number(count)]),
    ) as unknown as TokenCounts,
    tier: row.tier,
    requestId: row.requestId,
    cost: row.costNanos === null ? null : Number(row.costNanos) / 1e9,
    priceDated: row.priceDated,
  };
}

/** The chats of a provider that ended within five seconds, and how long they waited and were at the providers. */
export interface Ends {
  readonly provider: ProviderId;
  /** When the five seconds began, in milliseconds since the epoch. */
  readonly slot: number;
  readonly ended: number;
  readonly failed: number;
  /** In milliseconds; null where no worker began with any. */
  readonly waitedMs: { readonly p50: number; readonly p95: number } | null;
  readonly calledMs: { readonly p50: number; readonly p95: number } | null;
}

/** The ends since a time, oldest first, for the measurements of the last minutes. */
export async function readEnds(
  database: Ledger,
  { sinceMs, provider }: { sinceMs: number; provider?: ProviderId | undefined },
): Promise<Ends[]> {
  const percentiles = (column: string) => {
    const [p50, p95] = [0.5, 0.95].map(
      (share) => `percentile_disc(${share}) within group (order by ${column})`,
    );
    return sql.raw(
      `case when count(${column}) > 0 then jsonb_build_object('p50', ${p50}, 'p95', ${p95}) end`,
    );
  };
  const rows = await database.run((db) =>
    db.execute<Record<keyof Ends, never>>(sql`
      select provider, floor(extract(epoch from ended_at) / 5)::float8 * 5000 as slot, count(*)::int as ended,
        (count(*) filter (where ${isFailed}))::int as failed,
        ${percentiles('waited_ms')} as "waitedMs", ${percentiles('called_ms')} as "calledMs"
      from ${requests}
      where ended_at >= ${at(sinceMs)} ${provider === undefined ? sql`` : sql`and provider = ${provider}`}
      group by 1, 2 order by 2, 1`),
  );
  return [...rows];
}
