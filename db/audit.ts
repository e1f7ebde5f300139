import type { AuditAction, AuditEntry } from '../shared/contracts/accounts.js';
import { givenFields } from '../shared/json/json.js';
import type { Database } from './database/client.js';
import type { Drizzle } from './database/connections.js';
import { and, desc, eq, type SQL, sql } from './database/drizzle.js';
import { audit } from './schema.js';

/** Which entries are wanted; conditions that are absent hold for every one. */
export interface AuditFilter {
  limit: number;
  /** Only what is older than the entry with this id. */
  before?: string | undefined;
  actor?: string | undefined;
  action?: AuditAction | undefined;
  /** By its name. */
  target?: string | undefined;
}

/** The latest entries, newest first. Throws `Failure('database_unavailable')`. */
export async function listAudit(database: Pick<Database, 'run'>, filter: AuditFilter): Promise<AuditEntry[]> {
  const { limit, before, actor, action, target } = filter;
  const conditions = [
    // Its time is read there: JavaScript would cut the microseconds off. Once the entry was pruned, so was all that is
    // older.
    before &&
      sql`(${audit.at}, ${audit.id}) < (select at, id from ${audit} as entry where entry.id = ${before})`,
    actor === undefined ? undefined : eq(audit.actor, actor),
    action && eq(audit.action, action),
    target === undefined ? undefined : eq(audit.targetName, target),
  ];
  const rows = await database.run((db) =>
    db
      .select()
      .from(audit)
      .where(and(...conditions.filter((condition) => typeof condition === 'object')))
      .orderBy(desc(audit.at), desc(audit.id))
      .limit(limit),
  );
  return rows.map(({ at, before, after, ...entry }) => ({
    at: at.toISOString(),
    ...entry,
    ...givenFields({ before, after }),
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
  /** A query of the ids and names of what is changed, first these two. */
  targets: SQL;
  /** The permissions after the change, as a JSON object made from columns of `target`. */
  after?: SQL;
}

/** A part of the statement that makes the change, so that neither happens without the other. */
export const auditOf = (db: Drizzle, { actor, action, targets, after = sql`null` }: AuditedChange) =>
  db.$with(`audited ${action}`, {}).as(
    sql`insert into ${audit} (actor, action, target_id, target_name, after)
      select ${actor}::text, ${action}::text, target.id, target.name, ${after}::jsonb
      from (${targets}) as target (id, name)`,
  );
