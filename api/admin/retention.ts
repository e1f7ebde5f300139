import { pruneAudit } from '../../db/audit.js';
import type { Database } from '../../db/database/client.js';
import { pruneLedger } from '../../db/ledger/retention.js';
import type { Config } from '../../shared/config/config.js';
import type { Log } from '../../shared/runtime/log.js';

const intervalMs = 3_600_000;

interface RetentionDeps {
  readonly database: Database;
  readonly config: Pick<Config, 'AUDIT_DAYS' | 'LEDGER_DAYS'>;
  readonly log: Log;
}

/** Removes the rows of audit and ledger that are older than their days, now and every hour until `stop`. */
export function startRetention({ database, config, log }: RetentionDeps): { stop(): void } {
  const stopping = new AbortController();
  const { signal } = stopping;
  const prune = async () => {
    await pruneAudit(database, config.AUDIT_DAYS);
    await pruneLedger(database, { days: config.LEDGER_DAYS, signal });
  };
  const tryPrune = () => void prune().catch((err) => log.debug({ err }, 'audit or ledger not pruned'));
  const timer = setInterval(tryPrune, intervalMs);
  tryPrune();
  return {
    stop: () => {
      clearInterval(timer);
      stopping.abort();
    },
  };
}
