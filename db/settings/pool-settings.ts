import { v5 as uuidv5 } from 'uuid';
import type { AuditAction } from '../../shared/contracts/accounts.js';
import type { ProviderId } from '../../shared/contracts/contract.js';
import {
  type PoolOverrides,
  type ProviderSettings,
  providerSettingsSchema,
} from '../../shared/protocol/settings.js';
import type { Database } from '../database/client.js';
import { sql } from '../database/drizzle.js';
import { audit, poolSettings } from '../schema.js';

/** A change of all settings of a provider. */
export interface PoolSettingChange {
  readonly provider: ProviderId;
  /** The version that is replaced; 0 when nothing was ever set. */
  readonly expected: number;
  readonly version: number;
  readonly overrides: PoolOverrides;
  readonly changedBy: string;
}

/** The settings of all providers for which any were ever set. Throws `Failure('database_unavailable')`, as below. */
export async function listPoolSettings(
  database: Pick<Database, 'run'>,
  purpose: 'request' | 'background' = 'request',
): Promise<ProviderSettings[]> {
  const rows = await database.run((db) => db.select().from(poolSettings), purpose);
  // A row may be of a newer release.
  return rows.flatMap(
    ({ changedAt, ...row }) =>
      providerSettingsSchema.safeParse({ ...row, changedAt: changedAt.toISOString() }).data ?? [],
  );
}

/** Makes the change and writes the audit, in one statement. Undefined if the version is not the expected one. */
export async function changePoolSetting(
  database: Pick<Database, 'run'>,
  { provider, expected, version, overrides, changedBy }: PoolSettingChange,
): Promise<ProviderSettings | undefined> {
  const before = sql`(select overrides from ${poolSettings} where provider = ${provider})`;
  const known = sql`coalesce((select version from ${poolSettings} where provider = ${provider}), 0)`;
  const [row] = await database.run((db) =>
    db.execute<{ changed_ms: number }>(sql`
      with changed as (
        insert into ${poolSettings} as setting (provider, version, overrides, changed_by)
        select ${provider}, ${version}::integer, ${JSON.stringify(overrides)}::jsonb, ${changedBy}
        where ${known} = ${expected}::integer
        on conflict (provider) do update set version = excluded.version, overrides = excluded.overrides,
          changed_by = excluded.changed_by, changed_at = excluded.changed_at
        where setting.version = ${expected}::integer
        returning *
      ), audited as (
        insert into ${audit} (actor, action, target_id, target_name, before, after)
        select changed_by, ${action}::text, ${uuidv5(provider, providerIdsOf)}::uuid, provider, coalesce(${before}, '{}'), overrides
        from changed
      )
      select (extract(epoch from changed_at) * 1000)::float8 as changed_ms from changed`),
  );
  if (row === undefined) return undefined;
  return { provider, version, overrides, changedBy, changedAt: new Date(row.changed_ms).toISOString() };
}

const action: AuditAction = 'pools.set';

/** The namespace of the ids by which the audit names providers (RFC 9562, 5.5): a random UUID. */
const providerIdsOf = '0b9d6c3e-1f0e-4a53-9a38-6a1b5f2c7d94';
