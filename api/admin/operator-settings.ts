import type { Database } from '../../db/database/client.js';
import { changePoolSettings, type WantedSettings } from '../../db/settings/change-settings.js';
import type { Config } from '../../shared/config/config.js';
import { poolConfig, rulesOf } from '../../shared/config/pool-config.js';
import type { ProviderId } from '../../shared/contracts/contract.js';
import type { PoolSettings } from '../../shared/contracts/fleet-contract.js';
import type { Heartbeats } from '../../shared/fleet/heartbeats.js';
import type { LivePools } from '../../shared/fleet/live-pools.js';
import { viewSettings } from '../../shared/fleet/settings-view.js';
import { suggestConcurrency } from '../../shared/fleet/suggestion.js';
import { givenFields } from '../../shared/json/json.js';
import type { ModelRules } from '../../shared/models/model-names.js';
import type { ProviderSettings } from '../../shared/protocol/settings.js';
import type { SettingsChannel } from '../../shared/queue/settings-records.js';

/** Knows the settings and reaches the workers. */
export interface SettingsSource {
  /** Throws `queue_unavailable` until the queue has been reached, as `settingsChannel` does. */
  assertConnected(): void;
  readonly heartbeats: Pick<Heartbeats, 'of'>;
  readonly pools: Pick<LivePools, 'settings'>;
  readonly settingsChannel: SettingsChannel;
}

interface OperatorSettingsDeps {
  config: Config;
  database: Pick<Database, 'run'>;
  source: SettingsSource;
}

/** The settings of the pools as operators read and change them at this API process. */
export class OperatorSettings {
  readonly #deps: OperatorSettingsDeps;

  constructor(deps: OperatorSettingsDeps) {
    this.#deps = deps;
  }

  /** Needs no database: the settings as this process knows them. Throws `queue_unavailable` without a queue. */
  read(provider: ProviderId): PoolSettings {
    const { source } = this.#deps;
    source.assertConnected();
    return this.#view(provider, source.pools.settings.recordOf(provider));
  }

  /** Changes the settings as `changePoolSettings` does; the new ones count here at once. */
  async replace(wanted: WantedSettings): Promise<PoolSettings> {
    const { database, source } = this.#deps;
    const { isCopied, ...changed } = await changePoolSettings(wanted, {
      database,
      channel: source.settingsChannel,
      rulesOf: (id) => this.#rulesOf(id),
    });
    source.pools.settings.apply(changed);
    return { ...this.#view(wanted.provider, changed), ...(!isCopied && { isPending: true }) };
  }

  /** The rules of the live workers; while there are none, those of this process's environment. */
  #rulesOf(provider: ProviderId): readonly ModelRules[] {
    const heartbeats = this.#deps.source.heartbeats.of(provider) ?? [];
    if (heartbeats.length > 0) return heartbeats.map((heartbeat) => heartbeat.environment ?? heartbeat);
    return [rulesOf(poolConfig(this.#deps.config, provider))];
  }

  #view(provider: ProviderId, setting: ProviderSettings | undefined): PoolSettings {
    const { version = 0, changedAt, changedBy, overrides = {} } = setting ?? {};
    const heartbeats = this.#deps.source.heartbeats.of(provider) ?? [];
    const workers = heartbeats.reduce((sum, { concurrency }) => sum + concurrency, 0);
    const { globalConcurrency: global } = overrides;
    const suggestion = suggestConcurrency(heartbeats);
    return {
      provider,
      version,
      settings: viewSettings(provider, { config: this.#deps.config, overrides, heartbeats }),
      concurrency: {
        workers,
        ...givenFields({ global }),
        boundBy: global !== undefined && global < workers ? 'global' : 'workers',
      },
      workers: {
        live: heartbeats.length,
        current: heartbeats.filter(({ settingsVersion }) => settingsVersion >= version).length,
      },
      ...givenFields({ changedAt, changedBy, suggestion }),
    };
  }
}
