import { v5 as uuidv5 } from 'uuid';
import type { AuditAction } from '../../shared/contracts/accounts.js';
import type { ProviderId } from '../../shared/contracts/contract.js';
import { Failure } from '../../shared/failures.js';
import { isSettable, type ModelRules } from '../../shared/models/model-names.js';
import {
  type PoolOverrides,
  type ProviderSettings,
  providerSettingsSchema,
} from '../../shared/protocol/settings.js';
import { copySettings, readSettings, type SettingsChannel } from '../../shared/queue/settings-records.js';
import { invalidRequest } from '../../shared/validation.js';
import type { Database } from '../database/client.js';
import { sql } from '../database/drizzle.js';
import { audit, poolSettings } from '../schema.js';

/** The settings that an operator wants for a provider. */
export interface WantedSettings {
  readonly provider: ProviderId;
  /** All that shall replace the environment. */
  readonly overrides: PoolOverrides;
  /** The version that the change is based on; 0 when nothing was ever set. */
  readonly expected: number;
  readonly changedBy: string;
}

interface SettingsStores {
  readonly database: Pick<Database, 'run'>;
  readonly channel: SettingsChannel;
}

interface ChangeDeps extends SettingsStores {
  /** The models that the environment of each of a provider's workers allows. */
  readonly rulesOf: (provider: ProviderId) => readonly ModelRules[];
}

/** The settings of a provider that count: those of the database, or newer ones that only the queue's store has. */
export async function readPoolSettings(
  provider: ProviderId,
  { database, channel }: SettingsStores,
): Promise<{ stored: ProviderSettings | undefined; current: ProviderSettings | undefined }> {
  const [rows, [record]] = await Promise.all([
    listPoolSettings(database),
    readSettings(channel.records, [provider]).catch((cause) => {
      throw new Failure('queue_unavailable', { cause });
    }),
  ]);
  const stored = rows.find((row) => row.provider === provider);
  const isNewer = record !== undefined && record.version > (stored?.version ?? 0);
  return { stored, current: isNewer ? record : stored };
}

/**
 * Changes the settings of a provider: in the database with the audit, then in the queue's store, for the workers.
 * Throws `precondition_failed`, which names the earlier change, `invalid_request` for models that the environment does
 * not allow, `database_unavailable`, and `queue_unavailable` before anything was changed. Unless `isCopied`, the store
 * lacks the new ones, and API processes copy them later.
 */
export async function changePoolSettings(wanted: WantedSettings, deps: ChangeDeps) {
  const { provider, expected } = wanted;
  const { stored, current } = await readPoolSettings(provider, deps);
  if ((current?.version ?? 0) !== expected) throw changedBefore(current);
  checkModels(wanted, { before: current?.overrides ?? {}, rulesOf: deps.rulesOf });
  const changed = await changePoolSetting(deps.database, {
    ...wanted,
    expected: stored?.version ?? 0,
    version: expected + 1,
  });
  if (changed === undefined) throw changedBefore((await readPoolSettings(provider, deps)).current);
  const copying = copySettings(changed, deps.channel);
  const isCopied = await copying.then(() => true).catch(() => false);
  return { ...changed, isCopied };
}

interface ModelCheck {
  readonly rulesOf: ChangeDeps['rulesOf'];
  /** Its models may stay, so that a pool can always be paused; workers ignore those that they do not allow. */
  readonly before: PoolOverrides;
}

/** An operator's token must not choose where prompts go: only the environment can allow a path or an ARN. */
function checkModels({ provider, overrides }: WantedSettings, { before, rulesOf }: ModelCheck): void {
  const kept = new Set(namesIn(before, provider).map(({ id, name }) => `${id}/${name}`));
  const errors = namesIn(overrides, provider)
    .filter(({ id, name }) => !kept.has(`${id}/${name}`))
    .filter(({ id, name }) => !rulesOf(id).every((rules) => isSettable(name, rules)))
    .map(({ pointer, id }) => ({
      pointer,
      detail: `must be allowed by ${id.toUpperCase()}_MODELS, or a plain name where that is not set`,
    }));
  if (errors.length > 0) throw invalidRequest(errors);
}

/** Every name or pattern of models in the settings, with the provider whose model it is. */
const namesIn = ({ model, models = [], fallback = [] }: PoolOverrides, provider: ProviderId) => [
  ...(model === undefined ? [] : [{ pointer: '/model', id: provider, name: model }]),
  ...models.map((name, n) => ({ pointer: `/models/${n}`, id: provider, name })),
  ...fallback.flatMap(({ provider: id, model: name }, n) =>
    name === undefined ? [] : [{ pointer: `/fallback/${n}/model`, id, name }],
  ),
];

function changedBefore(current: ProviderSettings | undefined): Failure {
  const { version = 0 } = current ?? {};
  return new Failure('precondition_failed', {
    detail: current
      ? `The settings have changed since: ${current.changedBy} saved version ${version} at ${current.changedAt}.`
      : 'The settings are at version 0: there are no changes yet.',
    headers: { ETag: `"${version}"` },
  });
}

/** A change of all settings of a provider; `expected` is the version in the database, 0 when nothing was ever set. */
interface PoolSettingChange extends WantedSettings {
  readonly version: number;
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
