/*
 * Patch of bullmq 6.7.0: the function `publish_event` of its schema.
 * Gives: speed, see `postgres-adds.ts`.
 * Until: BullMQ can be told to publish no events.
 */
/**
 * A statement that silences BullMQ's events. It publishes four for each job, a row and a NOTIFY each, which wakes all
 * listeners of the database. They are not read, and there is no switch: its function gets a body that does nothing. The
 * lock is named after the table of records: two replacements at once fail.
 */
export const silenceEvents = (schema: string, table: string): string => `
  select pg_advisory_xact_lock(hashtext('${table}'));
  create or replace function ${schema}.publish_event(p_queue text, p_event text, p_data jsonb) returns bigint
  language sql immutable as 'select null::bigint'`;
