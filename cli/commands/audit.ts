import { listAudit } from '../../db/audit.js';
import type { Environment } from '../../shared/config/config.js';
import { StartupError } from '../../shared/runtime/program.js';
import { withDatabase } from '../database.js';
import { renderTable } from '../output/table.js';

interface AuditOptions {
  limit: string;
  json?: boolean;
}

/** `quillgate audit`: the changes of users, tokens and settings, newest first. Throws `StartupError`. */
export async function printAudit(environment: Environment, { limit, json }: AuditOptions): Promise<void> {
  if (!/^[1-9]\d{0,5}$/.test(limit)) throw new StartupError('--limit must be a number from 1 to 999999.');
  const entries = await withDatabase(environment, (database) =>
    listAudit(database, { limit: Number(limit) }),
  );
  if (json) process.stdout.write(`${JSON.stringify(entries, null, 2)}\n`);
  else if (entries.length === 0) process.stderr.write('Nothing was done to users, tokens or settings yet.\n');
  else
    process.stdout.write(
      renderTable(
        ['at', 'by', 'action', 'id', 'name', 'before', 'after'],
        entries.map(({ at, actor, action, targetId, targetName, before, after }) => [
          at,
          actor,
          action,
          targetId,
          targetName,
          before === undefined ? null : JSON.stringify(before),
          after === undefined ? null : JSON.stringify(after),
        ]),
      ),
    );
}
