import type { Config } from '../config/config.js';
import {
  configuredSettings,
  defaultSettings,
  fallbackOf,
  poolConfig,
  rulesOf,
} from '../config/pool-config.js';
import type { ProviderId } from '../contracts/contract.js';
import type { PoolSetting } from '../contracts/fleet-contract.js';
import type { PoolHeartbeat } from '../protocol/messages.js';
import { type PoolOverrides, settingNames } from '../protocol/settings.js';

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
