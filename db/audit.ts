import type { AuditAction } from '../shared/contract.js';
import type { Database } from './database/client.js';
import { desc, type SQL, sql } from './database/drizzle.js';
import { audit } from './schema.js';

/** Something that an operator has done. */
export interface AuditEntry {
  /** RFC 3339 in UTC. */
  at: string;
  /** Who it was: the account of the operating system, and its machine. */
  actor: string;
  action: AuditAction;
  /** Of the user or the token, or made from the name of the provider. */
  targetId: string;
  /** The user's name, that of the token's owner, or the provider. */
  targetName: string;
  /** Of settings: all that were set, and all that were set then. */
  before?: unknown;
  after?: unknown;
}

/** The latest entries, newest first, at most `limit`. Throws `Failure('database_unavailable')`. */
export async function listAudit(database: Database, limit: number): Promise<AuditEntry[]> {
  const rows = await database.run((db) =>
    db.select().from(audit).orderBy(desc(audit.at), desc(audit.id)).limit(limit),
  );
  return rows.map(({ id: _, at, before, after, ...entry }) => ({
    at: at.toISOString(),
    ...entry,
    ...(after !== null && { before, after }),
  }));
}

/** Removes the entries that are older than so many days. Throws `Failure('database_unavailable')`. */
export async function pruneAudit(database: Database, days: number): Promise<void> {
  await database.run(
    (db) => db.delete(audit).where(sql`${audit.at} < now() - ${days} * interval '1 day'`),
    'background',
  );
}

/** The actor of a change for which none was given. */
export const unknownActor = 'unknown';

interface AuditedChange {
  actor: string;
  action: AuditAction;
  /** A query of the ids and names of what is changed. */
  targets: SQL;
}

/** A part of the statement that makes the change, so that neither happens without the other. */
export const auditOf = ({ actor, action, targets }: AuditedChange): SQL =>
  sql`insert into ${audit} (actor, action, target_id, target_name)
    select ${actor}::text, ${action}::text, target.id, target.name from (${targets}) as target (id, name)`;
