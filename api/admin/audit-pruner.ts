import { pruneAudit } from '../../db/audit.js';
import type { Database } from '../../db/database/client.js';
import type { Log } from '../../shared/runtime/log.js';

const intervalMs = 3_600_000;

/** Removes the entries of the audit that are older than `auditDays` days, now and every hour until `stop`. */
export function startAuditPruner({
  database,
  auditDays,
  log,
}: {
  database: Database;
  auditDays: number;
  log: Log;
}): { stop(): void } {
  const prune = () =>
    void pruneAudit(database, auditDays).catch((err) => log.debug({ err }, 'audit not pruned'));
  const timer = setInterval(prune, intervalMs);
  prune();
  return { stop: () => clearInterval(timer) };
}
