import { createHash } from 'node:crypto';
import { openDatabase } from '../../db/database/client.js';
import { type SQL, sql } from '../../db/database/drizzle.js';
import { findRequest, listRequests } from '../../db/ledger/read.js';
import { daysOf, readUsage } from '../../db/ledger/usage.js';
import { writeLedger } from '../../db/ledger/write.js';
import { createLog } from '../../shared/runtime/log.js';
import { generousLimits, startTestDatabase } from '../support/database.js';
import { callRow, ledgerBatch, requestEnd, requestRow } from '../support/ledger.js';
import type { Place } from './programs.js';
import { describeFigures, type Figure, figure, isKept, loadAverage } from './report.js';

const chatsAtOnce = 1_000_000;
const days = 400;
const users = 2000;

/** Chats 1 to `last` of the last 400 days, of 2,000 users, with a call each; every fiftieth has failed. */
const fill = (from: number, last: number, all: number): SQL[] => {
  const chats = sql.raw(`
    (select n, md5(n::text)::uuid::text as chat, 'user-' || n % ${users} as user_id, 'gpt-' || n % 20 as model,
       now() - interval '${days} days' * ((${all} - n)::float8 / ${all}) as ended_at,
       case when n % 50 = 0 then 'provider_error' else 'ok' end as code
     from generate_series(${from}, ${last}) as n) as made`);
  return [
    sql`insert into requests (chat, user_id, user_name, api, console, session, provider, model, streamed, stored,
        added_at, attempt, run, code, worked_until, answered_provider, answered_model, waited_ms, called_ms)
      select chat, user_id, user_id, 'chat', false, case when n % 10 = 0 then 'session-' || n / 1000 end, 'openai',
        model, false, false, ended_at - interval '2 s', 1, 1, code, ended_at, 'openai', model, 3, 1900 from ${chats}`,
    sql`insert into calls (chat, attempt, added_at, run, call, kind, user_id, user_name, api, session, provider,
        model, answered_model, started_at, ended_at, known, code, requests, input, cached, written, written_for_1h,
        output, thinking, request_id, cost_nanos, price_dated)
      select chat, 1, ended_at - interval '2 s', 1, 1, 'first', user_id, user_id, 'chat',
        case when n % 10 = 0 then 'session-' || n / 1000 end, 'openai', model, model, ended_at - interval '1.9 s',
        ended_at, 'told', code, 1, 900, 100, 0, 0, 80, 0, 'req_' || n, 3000, current_date from ${chats}`,
  ];
};

const sumDays = sql`
  insert into usage_days (day, user_id, token_id, provider, model, api, user_name, calls, failed, estimated, lost,
    unpriced, input, cached, written, written_for_1h, output, thinking, cost_nanos)
  select (ended_at at time zone 'UTC')::date, user_id, '', provider, model, api, max(user_name), count(*),
    count(*) filter (where code <> 'ok'), 0, 0, 0, sum(input), sum(cached), 0, 0, sum(output), 0, sum(cost_nanos)
  from calls group by 1, 2, 3, 4, 5, 6`;

/** Measures the ledger with so many million chats; gives whether all was as fast as promised. */
export async function measureLedger(millions: number, place: Place, print: (text: string) => void) {
  const server = await startTestDatabase({ ownServer: true });
  place.lifecycle.opened('server of the ledger', server, ({ stop }) => stop());
  const log = createLog({ program: 'bench', level: 'silent' });
  const limits = { ...generousLimits, answerMs: 3_600_000 };
  const database = openDatabase({ url: server.url, poolSize: 2, log, ...limits });
  place.lifecycle.opened('database of the ledger', database, (open) => open.close());
  const run = (query: SQL) => database.run((db) => db.execute(query));
  const all = millions * chatsAtOnce;
  await run(sql`set statement_timeout = 0`);
  for (let from = 1; from <= all; from += chatsAtOnce) {
    for (const statement of fill(from, from + chatsAtOnce - 1, all)) await run(statement);
    print(`${from + chatsAtOnce - 1} chats\n`);
  }
  await run(sumDays);
  await run(sql`vacuum analyze`);
  const [size] = await run(
    sql`select (pg_total_relation_size('requests') + pg_total_relation_size('calls')) / ${all} as bytes`,
  );
  const one = { limit: 50, user: 'user-50' };
  const month = { ...daysOf({}), by: ['day', 'model'] as const };
  const figures: Figure[] = [
    figure('bytes a chat', Number(size?.bytes), ['≤', 1000], 'bytes'),
    figure('a chat written', await writingUs(database), ['≤', 70], 'µs'),
  ];
  const reads: [string, number, () => Promise<unknown>][] = [
    ['the newest page', 300, () => listRequests(database, { limit: 50 })],
    ['a request by its id', 300, () => findRequest(database, uuidOf(all / 2))],
    ["by its provider's id", 300, () => listRequests(database, { limit: 50, providerRequestId: 'req_7777' })],
    ["a user's page", 300, () => listRequests(database, one)],
    ["a user's failures", 1000, () => listRequests(database, { ...one, result: 'failed' })],
    ['all failures', 1000, () => listRequests(database, { limit: 50, result: 'failed' })],
    ['a session', 1000, () => listRequests(database, { limit: 50, session: 'session-77' })],
    ['a model, in seven days', 1000, () => listRequests(database, { limit: 50, model: 'gpt-7' })],
    ['no model, in seven days', 1000, () => listRequests(database, { limit: 50, model: 'none' })],
    ['a month by day and model', 300, () => readUsage(database, month)],
    ['a month by user', 300, () => readUsage(database, { ...daysOf({}), by: ['user'] })],
    ["a user's month", 300, () => readUsage(database, { ...daysOf({}), by: ['day'], user: 'user-50' })],
    ['a month by session', 1000, () => readUsage(database, { ...daysOf({}), by: ['session'] })],
  ];
  for (const [title, mostMs, read] of reads)
    figures.push(figure(title, await slowest(read), ['≤', mostMs], 'ms'));
  print(`\n${describeFigures(figures)}\nLoad average after: ${loadAverage()}\n`);
  return figures.every(isKept);
}

/** The id of chat `n`. */
function uuidOf(n: number): string {
  const hex = createHash('md5').update(`${n}`).digest('hex');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

/** The first one reads the disk; then the slowest of five, in milliseconds. */
async function slowest(read: () => Promise<unknown>): Promise<number> {
  await read();
  let most = 0;
  for (let n = 0; n < 5; n += 1) {
    const begunAt = performance.now();
    await read();
    most = Math.max(most, performance.now() - begunAt);
  }
  return most;
}

/** Batches of the drain with a request and a call each, in microseconds a chat: the time of the statement. */
async function writingUs(database: ReturnType<typeof openDatabase>): Promise<number> {
  const [batches, size] = [40, 500];
  const chats = Array.from({ length: batches * size }, () => crypto.randomUUID());
  const at = Date.now();
  let took = 0;
  for (let n = 0; n < batches; n += 1) {
    const own = chats.slice(n * size, (n + 1) * size);
    const requests = own.map((chat) =>
      requestRow({ chat, end: requestEnd({ at, waitedMs: 3, calledMs: 900 }) }),
    );
    const calls = own.map((chat) => callRow({ chat, endedAt: at, requestId: `req_${chat}` }));
    const batch = ledgerBatch({
      requests,
      calls,
      ended: calls.map(({ chat, attempt, addedAt, run }) => ({ chat, attempt, addedAt, run })),
    });
    const begunAt = performance.now();
    await writeLedger(database, batch);
    took += performance.now() - begunAt;
  }
  return (took * 1000) / chats.length;
}
