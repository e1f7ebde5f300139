import { pruneAudit } from '../../db/audit.js';
import type { Database } from '../../db/database/client.js';
import type { Log } from '../../shared/runtime/log.js';

interface AuditPrunerDeps {
  database: Database;
  /** Entries of the audit are kept for so many days. */
  auditDays: number;
  log: Log;
}

const intervalMs = 3_600_000;

/** Removes old entries of the audit, now and every hour until `stop`. */
export function startAuditPruner({ database, auditDays, log }: AuditPrunerDeps): { stop(): void } {
  const prune = () =>
    void pruneAudit(database, auditDays).catch((err) => log.debug({ err }, 'audit not pruned'));
  const timer = setInterval(prune, intervalMs);
  prune();
  return { stop: () => clearInterval(timer) };
}
