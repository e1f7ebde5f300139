import { listAudit } from '../../db/audit.js';
import type { Environment } from '../../shared/config/config.js';
import { StartupError } from '../../shared/runtime/program.js';
import { withDatabase } from '../database.js';
import { printList } from '../output/fleet-tables.js';

/** `quillgate audit`: the changes of users, tokens and settings, newest first. Throws `StartupError`. */
export async function printAudit(
  environment: Environment,
  { limit, json }: { limit: string; json?: boolean },
): Promise<void> {
  if (!/^[1-9]\d{0,5}$/.test(limit)) throw new StartupError('--limit must be a number from 1 to 999999.');
  const entries = await withDatabase(environment, (database) =>
    listAudit(database, { limit: Number(limit) }),
  );
  const shown = (value: unknown) => (value === undefined ? null : JSON.stringify(value));
  printList(entries, {
    json,
    none: 'Nothing was done to users, tokens or settings yet.',
    columns: {
      at: ({ at }) => at,
      by: ({ actor }) => actor,
      action: ({ action }) => action,
      id: ({ targetId }) => targetId,
      name: ({ targetName }) => targetName,
      before: ({ before }) => shown(before),
      after: ({ after }) => shown(after),
    },
  });
}
