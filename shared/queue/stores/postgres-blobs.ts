import type pg from 'pg';
import { withTimeout } from '../../runtime/retry.js';
import type { BlobStore } from '../blobs.js';
import { QueryQueue } from './postgres-jobs.js';

/** A chunk may take longer than other statements. */
const timeoutMs = 10_000;
/** Keeps each statement short. */
const maxRemovedAtOnce = 100;

/**
 * Creates the table, which has the name of images because they came first. It is not logged: a crash of PostgreSQL
 * empties it. Images do not get smaller by compression, which would be tried for each.
 */
export const makeBlobs = (table: string): string => `
  create unlogged table if not exists ${table} (
    user_id text, sha256 text, n integer, bytes bytea not null, ends_at timestamptz not null,
    primary key (user_id, sha256, n));
  alter table ${table} alter column bytes set storage external;
  create index if not exists quillgate_images_ends_at on ${table} (ends_at)`;

/** Expired chunks count as absent, removed or not. Only the server's clock is used. */
export function openPostgresBlobs(
  pool: pg.Pool,
  { table, concurrency }: { table: string; concurrency: number },
): BlobStore {
  const queue = new QueryQueue({ concurrency, silentMs: timeoutMs });
  const end = (ttlMs: string) => `clock_timestamp() + ${ttlMs}::float8 * interval '1 millisecond'`;
  const ofBlob = `user_id = $1 and sha256 = $2 and ends_at > clock_timestamp()`;
  // What it returns was there as it was extended; a query beside it may have seen what ended since.
  const extend = `
    update ${table} set ends_at = greatest(ends_at, ${end('$3')}) where ${ofBlob} returning n`;
  const write = `
    insert into ${table} as there (user_id, sha256, n, bytes, ends_at) values ($1, $2, $4, $5, ${end('$3')})
    on conflict (user_id, sha256, n) do update set ends_at = greatest(there.ends_at, excluded.ends_at)`;
  const read = `select n, bytes from ${table} where ${ofBlob}`;
  const removeOne = `delete from ${table} where user_id = $1 and sha256 = $2`;
  const remove = `delete from ${table} where (user_id, sha256, n) in
    (select user_id, sha256, n from ${table} where ends_at <= now() order by ends_at limit $1 for update skip locked)`;

  const query = <Row extends pg.QueryResultRow>(text: string, values: unknown[]) =>
    withTimeout(
      timeoutMs,
      queue.run(() => pool.query<Row>(text, values)),
    );
  return {
    extend: async ({ user, key }, { ttlMs }) => {
      const { rows } = await query<{ n: number }>(extend, [user, key, ttlMs]);
      return new Set(rows.map(({ n }) => n));
    },
    write: async ({ user, key }, { n, bytes, ttlMs }) =>
      void (await query(write, [user, key, ttlMs, n, bytes])),
    read: async ({ user, key }, { chunks }) => {
      const { rows } = await query<{ n: number; bytes: Buffer }>(read, [user, key]);
      const byNumber = new Map(rows.map(({ n, bytes }) => [n, bytes]));
      return Array.from({ length: chunks }, (_, n) => byNumber.get(n));
    },
    remove: async ({ user, key }) => void (await query(removeOne, [user, key])),
    removeEnded: async () => {
      let removed: number | null;
      do removed = (await query(remove, [maxRemovedAtOnce])).rowCount;
      while (removed === maxRemovedAtOnce);
    },
  };
}
