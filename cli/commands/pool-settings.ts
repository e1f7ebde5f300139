import { isDeepStrictEqual } from 'node:util';
import { changePoolSettings, readPoolSettings } from '../../db/settings/change-settings.js';
import { type Config, type Environment, parseConfig } from '../../shared/config/config.js';
import { poolConfig, rulesOf } from '../../shared/config/pool-config.js';
import { parseTargets } from '../../shared/config/variable-types.js';
import { type ProviderId, providerIds } from '../../shared/contracts/contract.js';
import { Failure, failureKinds } from '../../shared/failures.js';
import { viewSettings } from '../../shared/fleet/fleet.js';
import { suggestConcurrency } from '../../shared/fleet/live-pools.js';
import { givenFields } from '../../shared/json/json.js';
import type { PoolHeartbeat } from '../../shared/protocol/messages.js';
import {
  newOverridesSchema,
  type PoolOverrides,
  type ProviderSettings,
} from '../../shared/protocol/settings.js';
import { StartupError } from '../../shared/runtime/program.js';
import { retry } from '../../shared/runtime/retry.js';
import { parseBody } from '../../shared/validation.js';
import { actor } from '../database.js';
import { hearFleet, type ListenTimes, withSettings } from '../fleet.js';
import { describeSuggestion, renderTable } from '../output/fleet-tables.js';

/** The options of `quillgate pools set`, as they are typed; `default` takes back what was set. */
export type SetOptions = { [name in Option | 'ifVersion']?: string } & Pick<ListenTimes, 'listenMs'>;

type Option = Exclude<keyof PoolOverrides, 'intake'>;

type Change = (before: PoolOverrides) => PoolOverrides;

/** How long to listen to the workers, each of which sends a heartbeat a second. */
const defaultListenMs = 1500;

/**
 * `quillgate pools list`: the settings of the pools that can be changed, where each comes from, and what the workers'
 * last five minutes suggest as their concurrency.
 */
export async function listPools(
  environment: Environment,
  { json, listenMs }: { json?: boolean; listenMs?: number },
): Promise<void> {
  const config = parseConfig(environment, 'command');
  const [stored, heartbeatsOf] = await Promise.all([
    withSettings(environment, (stores) => Promise.all(providerIds.map((id) => readPoolSettings(id, stores)))),
    hearPools(config, listenMs),
  ]);
  const pools = providerIds.map((provider, n) => {
    const heartbeats = heartbeatsOf(provider);
    const pool = viewPool(provider, { config, current: stored[n]?.current, heartbeats });
    return { ...pool, suggestion: suggestConcurrency(heartbeats) };
  });
  const lines = pools.flatMap(({ provider, suggestion }) =>
    suggestion ? `${describeSuggestion(provider, suggestion)}\n` : [],
  );
  const shown = () => renderPools(pools) + lines.join('');
  process.stdout.write(json ? `${JSON.stringify(pools, null, 2)}\n` : shown());
}

/** `quillgate pools set`: throws `StartupError` for bad options, and when the version is not `--if-version`. */
export async function setPool(
  environment: Environment,
  provider: string,
  { ifVersion, listenMs, ...options }: SetOptions,
): Promise<void> {
  const given = Object.entries(options);
  if (given.length === 0) throw new StartupError('Name a setting to change; see quillgate pools set --help.');
  if (ifVersion !== undefined && !/^\d{1,9}$/.test(ifVersion))
    throw new StartupError('--if-version must be a version, as quillgate pools list shows it.');
  const changes = Object.fromEntries(
    given.map(([name, text]) => [name, readOption(name as keyof typeof options, text)]),
  );
  const change: Change = (before) => parseBody(newOverridesSchema, givenFields({ ...before, ...changes }));
  const expected = ifVersion ? Number(ifVersion) : undefined;
  await changePool(environment, provider, { change, expected, listenMs });
}

/** `quillgate pools pause`, `drain` and `resume`. */
export async function setIntake(
  environment: Environment,
  provider: string,
  { intake, listenMs }: { intake: PoolOverrides['intake'] | 'open'; listenMs?: number },
): Promise<void> {
  const change: Change = ({ intake: _, ...others }) =>
    intake && intake !== 'open' ? { ...others, intake } : others;
  await changePool(environment, provider, { change, listenMs });
}

/** `quillgate pools reset`: the environment alone counts again. */
export async function resetPool(
  environment: Environment,
  provider: string,
  { listenMs }: Pick<ListenTimes, 'listenMs'> = {},
): Promise<void> {
  await changePool(environment, provider, { change: () => ({}), listenMs });
}

/** Others who change the same settings at the same time. */
const maxTries = 5;
const pauseMs = 20;

interface ChangeOptions {
  change: Change;
  /** The version that it is based on; by default the current one. */
  expected?: number | undefined;
  listenMs?: number | undefined;
}

async function changePool(
  environment: Environment,
  name: string,
  { change, expected, listenMs }: ChangeOptions,
): Promise<void> {
  const provider = providerIds.find((id) => id === name);
  if (provider === undefined)
    throw new StartupError(`The provider must be one of: ${providerIds.join(', ')}.`);
  const shouldRetry = (error: unknown) =>
    expected === undefined && error instanceof Failure && error.code === 'precondition_failed';
  const { isCopied, before, current, config } = await withSettings(environment, async (stores) => {
    const { config } = stores;
    const changeOnce = async () => {
      const { current } = await readPoolSettings(provider, stores);
      const before = current?.overrides ?? {};
      const base = expected ?? current?.version ?? 0;
      const changed = await changePoolSettings(
        { provider, overrides: change(before), expected: base, changedBy: actor() },
        { ...stores, rulesOf: (id) => [rulesOf(poolConfig(config, id))] },
      );
      return { ...changed, before };
    };
    const changed = await retry(changeOnce, { pauseMs, maxTries, shouldRetry });
    const { current } = await readPoolSettings(provider, stores);
    return { ...changed, current, config };
  }).catch((error) => {
    throw error instanceof Failure ? new StartupError(describeFailure(error)) : error;
  });
  // A setting that is taken back has the value of the workers' environment.
  const isTakenBack = Object.keys(before).some((name) => !(name in (current?.overrides ?? {})));
  const heartbeats = isTakenBack ? (await hearPools(config, listenMs))(provider) : [];
  const pool = viewPool(provider, { config, current, heartbeats });
  const shownBefore = viewSettings(provider, { config, overrides: before, heartbeats });
  const settings = pool.settings.filter((setting, index) => !isDeepStrictEqual(setting, shownBefore[index]));
  process.stdout.write(
    settings.length > 0
      ? renderPools([{ ...pool, settings }])
      : `Nothing changed; version ${pool.version}.\n`,
  );
  if (!isCopied)
    process.stderr.write("The queue's store does not answer: workers learn of the change when it is back.\n");
}

/** For people; says which options are wrong. */
function describeFailure({ code, facts: { detail, errors } }: Failure): string {
  if (errors === undefined) return detail ?? failureKinds[code].detail;
  return errors.map((one) => `${optionOf(one.pointer)} ${one.detail}.`).join('\n');
}

/** `/timeoutMs` -> `--timeout-ms`; a part of a value as `--rate: durationMs`. */
function optionOf(pointer: string): string {
  const [, name = '', ...part] = pointer.split('/');
  const option = `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
  const field = part.find((step) => !/^\d+$/.test(step));
  return field === undefined ? option : `${option}: ${field}`;
}

interface PoolFacts {
  readonly config: Config;
  readonly current: ProviderSettings | undefined;
  readonly heartbeats: readonly PoolHeartbeat[];
}

function viewPool(provider: ProviderId, { config, current, heartbeats }: PoolFacts) {
  const { version = 0, changedAt = null, changedBy = null, overrides = {} } = current ?? {};
  const settings = viewSettings(provider, { config, overrides, heartbeats });
  return { provider, version, changedAt, changedBy, settings };
}

/** Listens, and gives the heartbeats of a provider's workers; none while the store cannot be reached. */
const hearPools = (config: Config, listenMs = defaultListenMs) =>
  hearFleet(config, { listenMs }, ({ heartbeatsOf }) => heartbeatsOf);

function renderPools(pools: readonly ReturnType<typeof viewPool>[]): string {
  const rows = pools.flatMap(({ provider, version, changedAt, changedBy, settings }) =>
    settings.map(({ name, value, source }) => {
      const shown = value === null ? null : JSON.stringify(value);
      // The last change is that of all settings, also when it took one back.
      return [provider, name, shown, source, String(version), changedAt, changedBy];
    }),
  );
  return renderTable(['provider', 'setting', 'value', 'source', 'version', 'changed', 'by'], rows);
}

/** Undefined takes back what was set. Throws `StartupError`. */
function readOption(name: Option, text: string): unknown {
  if (text === 'default') return undefined;
  switch (name) {
    case 'rate':
      return readRate(text);
    case 'breaker':
    case 'model':
      return text;
    case 'models':
      return text === 'none' ? [] : text.split(',').map((part) => part.trim());
    case 'fallback':
      return parseTargets(text) ?? text;
    default:
      return /^\d{1,9}$/.test(text) ? Number(text) : text;
  }
}

const units = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** `60/1m`: so many jobs in such a time. */
function readRate(text: string): unknown {
  const parts = /^(?<max>\d{1,9})\/(?<count>\d{1,9})?(?<unit>ms|s|m|h)$/.exec(text)?.groups;
  const { max, count = '1', unit } = parts ?? {};
  if (max === undefined)
    throw new StartupError('--rate must be like 60/1m or 5/500ms: jobs, and the time for them.');
  return { max: Number(max), durationMs: Number(count) * units[unit as keyof typeof units] };
}
