import type pg from 'pg';
import { storeTimeoutMs, withTimeout } from '../../runtime/retry.js';
import { maxOutboxEntries, type Outbox, type OutboxEntry, OutboxFull } from '../queue-store.js';

export const makeOutbox = (table: string): string => `
  create table if not exists ${table} (
    id bigint generated always as identity primary key,
    at timestamptz not null default clock_timestamp(), entry text not null)`;

/** A lower id may be committed after a higher one was read, so a reader begins at the head again each time. */
export function openPostgresOutbox(pool: pg.Pool, table: string): Outbox {
  // The ids alone say that there is room, unless some between the first and the last were removed.
  const append = `
    insert into ${table} (entry) select entry from unnest($1::text[]) with ordinality as given (entry, n)
    where (select coalesce(max(id) - min(id) + 1, 0) from ${table}) <= $2::bigint - cardinality($1::text[])
    or (select count(*) from ${table}) <= $2::bigint - cardinality($1::text[]) order by n`;
  const read = `select id, entry from ${table} where id > $1 order by id limit $2`;
  const remove = `delete from ${table} where id = any($1::bigint[])`;
  const size = `select count(*)::float8 as entries, floor(extract(epoch from min(at)) * 1000)::float8 as "oldestAt"
    from ${table}`;

  const query = <Row extends pg.QueryResultRow>(text: string, values: unknown[]) =>
    withTimeout(storeTimeoutMs, pool.query<Row>(text, values));
  return {
    append: async (entries) => {
      const { rowCount } = await query(append, [entries, maxOutboxEntries]);
      if (rowCount !== entries.length) throw new OutboxFull('the outbox is full');
    },
    read: async ({ limit, after = '0' }) => (await query<OutboxEntry>(read, [after, limit])).rows,
    remove: async (ids) => void (await query(remove, [ids])),
    size: async () => {
      const { rows } = await query<{ entries: number; oldestAt: number | null }>(size, []);
      const { entries = 0, oldestAt } = rows[0] ?? {};
      return { entries, oldestAt: oldestAt ?? undefined };
    },
  };
}
