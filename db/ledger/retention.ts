import { setTimeout as delay } from 'node:timers/promises';
import type { AuditAction } from '../../shared/contracts/accounts.js';
import type { Database } from '../database/client.js';
import { sql } from '../database/drizzle.js';
import { audit, calls, requests, usageDays } from '../schema.js';
import { userIds } from './names.js';
import { dayKey, listOf, sumColumns } from './sums.js';

const rowsAtOnce = 5000;

/**
 * Removes the requests that ended more than so many days ago with their calls, by 5,000 with a pause; the days stay.
 * Throws `database_unavailable`, and an `AbortError` once the signal is aborted.
 */
export async function pruneLedger(
  database: Pick<Database, 'run'>,
  { days, signal, pauseMs = 1000 }: { days: number; signal?: AbortSignal; pauseMs?: number },
): Promise<void> {
  const since = sql`now() - ${days} * interval '1 day'`;
  for (;;) {
    const [row] = await database.run(
      (db) =>
        db.execute<{ removed: number }>(sql`
        with old as (
          select chat from ${requests} where ended_at < ${since} or (ended_at is null and added_at < ${since})
          limit ${rowsAtOnce} for update skip locked
        ), gone as (
          delete from ${calls} where chat in (select chat from old)
        ), removed as (
          delete from ${requests} where chat in (select chat from old) returning chat
        )
        select count(*)::int as removed from removed`),
      'background',
    );
    if ((row?.removed ?? 0) < rowsAtOnce) return;
    await delay(pauseMs, undefined, { ...(signal && { signal }), ref: false });
  }
}

/** The name and the id that replace those of a forgotten user. */
const digest = sql`'forgotten-' || left(encode(sha256(user_id::bytea), 'hex'), 16)`;
const action: AuditAction = 'usage.forget';

/**
 * Replaces a user's name and id in the ledger by a digest of the id, and audits it; the sums stay. Gives how many
 * requests there were. A repetition goes on where one has broken off. Throws `database_unavailable`.
 */
export async function forgetUser(
  database: Pick<Database, 'run'>,
  user: string,
  actor: string,
): Promise<number> {
  const isId = sql`id ~ '^[0-9a-f-]{36}$'`;
  const ids = sql`select id from (${userIds(user)}) as wanted (id) where ${isId}`;
  const key = Object.keys(dayKey);
  const [days] = await database.run((db) =>
    db.execute<{ forgotten: number }>(sql`
      with gone as (
        delete from ${usageDays} where user_id in (${ids}) returning *
      ), kept as (
        insert into ${usageDays} as known_day (${listOf([...key, 'user_name', ...sumColumns], String)})
        select ${listOf(key, (name) => (name === 'user_id' ? 'digest' : name))}, digest,
          ${listOf(sumColumns, (name) => `sum(${name})`)}
        from (select *, ${digest} as digest from gone) as gone group by 1, 2, 3, 4, 5, 6
        on conflict (${listOf(key, String)}) do update set
          ${listOf(sumColumns, (name) => `${name} = known_day.${name} + excluded.${name}`)}
      ), audited as (
        insert into ${audit} (actor, action, target_id, target_name)
        select ${actor}::text, ${action}::text, id::uuid, ${user}::text from (${ids}) as wanted
        where id in (select user_id from gone) or exists (select from ${requests} where user_id = id)
        returning id
      )
      select count(*)::int as forgotten from audited`),
  );
  let changed = 0;
  for (let last = days?.forgotten ? rowsAtOnce : 0; last === rowsAtOnce; changed += last) {
    const [row] = await database.run((db) =>
      db.execute<{ changed: number }>(sql`
        with batch as (
          select chat from ${requests} where user_id in (${ids}) limit ${rowsAtOnce}
        ), made as (
          update ${calls} set user_id = ${digest}, user_name = ${digest} where chat in (select chat from batch)
        ), changed as (
          update ${requests} set user_id = ${digest}, user_name = ${digest} where chat in (select chat from batch)
          returning chat
        )
        select count(*)::int as changed from changed`),
    );
    last = row?.changed ?? 0;
  }
  return changed;
}
