import { type PoolConfig, rulesOf } from '../../shared/config/pool-config.js';
import { isSettable } from '../../shared/models/model-names.js';
import type { ConfiguredSettings, PoolOverrides, ProviderSettings } from '../../shared/protocol/settings.js';

/** The environment's settings, some replaced by operators, and the settings that only operators can make. */
export interface LivePoolSettings
  extends PoolConfig,
    Pick<PoolOverrides, 'globalConcurrency' | 'rate' | 'intake' | 'breaker'> {}

/** The settings of a pool, to be read from `current` at each use; only a job keeps those with which it began. */
export class LiveSettings {
  /** The environment's settings, as in heartbeats. */
  readonly configured: ConfiguredSettings;
  readonly #environment: PoolConfig;
  #current: LivePoolSettings;
  #version = 0;
  readonly #listeners: (() => void)[] = [];

  constructor(environment: PoolConfig, configured: ConfiguredSettings = {}) {
    this.configured = configured;
    this.#environment = environment;
    this.#current = environment;
  }

  get current(): LivePoolSettings {
    return this.#current;
  }

  /** The version of the operators' settings; 0 while there are none. */
  get version(): number {
    return this.#version;
  }

  /** Replaces the operators' settings, then calls the listeners in their order. False unless they are newer. */
  apply({ version, overrides }: Pick<ProviderSettings, 'version' | 'overrides'>): boolean {
    if (version <= this.#version) return false;
    // The API decides on the fallback.
    const { fallback: _, model, models, ...own } = overrides;
    const environment = rulesOf(this.#environment);
    this.#current = {
      ...this.#environment,
      ...own,
      ...(own.firstTokenTimeoutMs !== undefined && { firstTokenBeforeFallbackMs: undefined }),
      // The API has checked this by what it knew: an operator's token must not choose where prompts go.
      ...(model !== undefined && isSettable(model, environment) && { model }),
      ...(models && { models: models.filter((pattern) => isSettable(pattern, environment)) }),
      ...((model !== undefined || models) && { environment }),
    };
    this.#version = version;
    for (const listener of this.#listeners) listener();
    return true;
  }

  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }
}
