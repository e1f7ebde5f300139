import type { Config } from '../config/config.js';
import {
  configuredSettings,
  defaultSettings,
  fallbackOf,
  poolConfig,
  rulesOf,
} from '../config/pool-config.js';
import { type ProviderId, providerIds } from '../contracts/contract.js';
import type { FleetProvider, FleetWorker, PoolSetting } from '../contracts/fleet-contract.js';
import type { PoolHeartbeat } from '../protocol/messages.js';
import { type PoolOverrides, settingNames } from '../protocol/settings.js';
import type { Heartbeats } from './heartbeats.js';

/** A provider's workers. Only the store knows how many jobs wait. */
type ServedProvider = Omit<FleetProvider, 'queue'>;

/** Best first. */
const states = ['serving', 'probing', 'paused'] as const;

/** The workers as operators see them, by provider in their usual order. Silent ones are shown for a minute. */
export const describeProviders = (heartbeats: Heartbeats): ServedProvider[] =>
  providerIds.map((provider) => describeProvider(provider, heartbeats));

function describeProvider(provider: ProviderId, heartbeats: Heartbeats): ServedProvider {
  const workers = heartbeats.shownOf(provider);
  const live = workers.filter(({ state }) => state !== 'silent');
  const state = stateOf(workers, heartbeats);
  const takesJobs = state === 'serving' || state === 'probing';
  const failing = takesJobs ? heartbeats.chats.failingOf(provider) : undefined;
  const chats = heartbeats.chats.of(provider);
  return {
    provider,
    state,
    ...(failing && { failing }),
    ...(chats && { chats }),
    kind: kindOf(live.length > 0 ? live : workers),
    concurrency: sumOf(live, 'concurrency'),
    inFlight: sumOf(live, 'inFlight'),
    workers: workers.sort((a, b) => (a.worker < b.worker ? -1 : 1)),
  };
}

function stateOf(workers: readonly FleetWorker[], { isFirstDue }: Heartbeats): ServedProvider['state'] {
  const best = states.find((state) => workers.some((worker) => worker.state === state));
  if (best) return best;
  if (!isFirstDue) return 'unknown';
  return workers.length > 0 ? 'silent' : 'absent';
}

/** A number that JSON has, for every heartbeat. */
const sumOf = (workers: readonly FleetWorker[], field: 'concurrency' | 'inFlight'): number =>
  Math.min(
    workers.reduce((sum, worker) => sum + worker[field], 0),
    Number.MAX_SAFE_INTEGER,
  );

function kindOf(workers: readonly FleetWorker[]): ServedProvider['kind'] {
  const kinds = new Set(workers.map(({ simulated }) => simulated));
  if (kinds.size === 2) return 'mixed';
  const [simulated] = kinds;
  if (simulated === undefined) return 'unknown';
  return simulated ? 'simulated' : 'real';
}

/** A model that callers may name. */
export interface ListedModel {
  readonly provider: ProviderId;
  /** The provider's own name. */
  readonly model: string;
  /** The time at which this process first saw the model, in milliseconds since the epoch. */
  readonly since: number;
}

/** The models that pools name in their heartbeats; those of a provider without a worker stay for ten minutes. */
export const listModels = (heartbeats: Heartbeats): ListedModel[] =>
  providerIds.flatMap((provider) => heartbeats.modelsOf(provider).map((model) => ({ provider, ...model })));

interface ViewOptions {
  /** This process's own. It decides on the fallback, and stands in for the workers while none is live. */
  readonly config: Config;
  readonly overrides: PoolOverrides;
  /** The last heartbeats of the provider's live workers. */
  readonly heartbeats: readonly PoolHeartbeat[];
}

/** All settings that can be changed, each with its value and source. Where workers differ, the first by name counts. */
export function viewSettings(
  provider: ProviderId,
  { config, overrides, heartbeats }: ViewOptions,
): PoolSetting[] {
  const environment = environmentOf(provider, { config, heartbeats });
  const fallback = fallbackOf(config, provider);
  const set: Readonly<Record<string, unknown>> = { ...environment.set, ...(fallback && { fallback }) };
  const values: Readonly<Record<string, unknown>> = { ...environment.values, fallback };
  return settingNames.map((name) => {
    const override = overrides[name];
    if (override !== undefined) return { name, value: override, source: 'override' };
    return { name, value: values[name] ?? null, source: set[name] === undefined ? 'default' : 'environment' };
  });
}

/** The values, and those that are not the default. Where the simulator plays the provider, the models are its own. */
function environmentOf(
  provider: ProviderId,
  { config, heartbeats }: Pick<ViewOptions, 'config' | 'heartbeats'>,
) {
  const [worker] = heartbeats.toSorted((a, b) => (a.worker < b.worker ? -1 : 1));
  const set = worker?.configured ?? configuredSettings(config, provider);
  const { defaultModel: model, models } = worker
    ? (worker.environment ?? worker)
    : rulesOf(poolConfig(config, provider));
  return { set, values: { ...defaultSettings(provider), ...set, model, models } };
}
