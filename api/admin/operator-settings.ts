import { setTimeout as delay } from 'node:timers/promises';
import type { Database } from '../../db/database/client.js';
import {
  changePoolSettings,
  listPoolSettings,
  type WantedSettings,
} from '../../db/settings/change-settings.js';
import type { Config } from '../../shared/config/config.js';
import { poolConfig, rulesOf } from '../../shared/config/pool-config.js';
import { type ProviderId, providerIds } from '../../shared/contracts/contract.js';
import type { PoolSettings } from '../../shared/contracts/fleet-contract.js';
import { viewSettings } from '../../shared/fleet/fleet.js';
import type { Heartbeats } from '../../shared/fleet/heartbeats.js';
import { type FleetSettings, type LivePools, suggestConcurrency } from '../../shared/fleet/live-pools.js';
import { givenFields } from '../../shared/json/json.js';
import type { ModelRules } from '../../shared/models/model-names.js';
import type { ProviderSettings } from '../../shared/protocol/settings.js';
import { copySettings, readSettings, type SettingsChannel } from '../../shared/queue/settings-records.js';
import type { Log } from '../../shared/runtime/log.js';

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

interface SettingsKeeperDeps {
  settings: FleetSettings;
  database: Database;
  channel: SettingsChannel;
  log: Log;
}

const pauseMs = 5000;
/** On every sixth round the table is read as well, and BullMQ's limits are compared. */
const pausesToTable = 6;

/**
 * Brings together what the database, the queue's store and this API process know of the settings: the newest of each
 * provider is what all of them shall have. So a change that was committed and not copied is copied, and a store that
 * was wiped gets its records and BullMQ's limits back.
 */
export class SettingsKeeper {
  readonly #deps: SettingsKeeperDeps;
  readonly #stopping = new AbortController();
  #running: Promise<void> | undefined;

  constructor(deps: SettingsKeeperDeps) {
    this.#deps = deps;
  }

  /** Resolves once the settings of the queue's store are known here, or could not be read. */
  async start(): Promise<void> {
    await this.keep({ withTable: false });
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  /** With the table or without it; never throws. */
  async keep({ withTable }: { withTable: boolean }): Promise<void> {
    const { settings, database, channel, log } = this.#deps;
    const failed = (err: unknown) => log.debug({ err }, 'settings not compared');
    if (withTable) {
      const rows = await listPoolSettings(database, 'background').catch(failed);
      for (const row of rows ?? []) settings.apply(row);
    }
    const recorded = await readSettings(channel.records, providerIds).catch(failed);
    if (recorded === undefined) return;
    for (const [n, id] of providerIds.entries())
      await this.#keepOne(recorded[n], settings.recordOf(id), { withLimits: withTable }).catch(failed);
  }

  async #keepOne(
    recorded: ProviderSettings | undefined,
    known: ProviderSettings | undefined,
    { withLimits }: { withLimits: boolean },
  ): Promise<void> {
    const { settings, channel, log } = this.#deps;
    if (recorded) settings.apply(recorded);
    if (known && known.version > (recorded?.version ?? 0)) {
      await copySettings(known, channel);
      log.warn(
        { provider: known.provider, version: known.version },
        'settings put back into the queue store',
      );
    } else if (recorded && withLimits) await channel.syncLimits(recorded.provider);
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    for (let pauses = 0; !signal.aborted; pauses += 1) {
      await this.keep({ withTable: pauses % pausesToTable === 0 });
      await delay(pauseMs, undefined, { signal, ref: false }).catch(() => undefined);
    }
  }
}
