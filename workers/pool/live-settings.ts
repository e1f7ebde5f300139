import { type PoolConfig, rulesOf } from '../../shared/config/pool-config.js';
import type { ProviderId } from '../../shared/contracts/contract.js';
import { isSettable } from '../../shared/models/model-names.js';
import { decodeRemovedUsers, removedUsersKey, topics } from '../../shared/protocol/messages.js';
import {
  type ConfiguredSettings,
  decodeSettings,
  type PoolOverrides,
  type ProviderSettings,
  settingsKey,
  settingsRecordSchema,
} from '../../shared/protocol/settings.js';
import type { RecordStore } from '../../shared/queue/queue-store.js';
import type { Relay } from '../../shared/queue/relay.js';
import type { Log } from '../../shared/runtime/log.js';
import type { RunningJobs } from '../job/running-jobs.js';

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

interface SettingsFollowerDeps {
  /** The settings of each pool of this process. */
  settings: ReadonlyMap<ProviderId, Pick<LiveSettings, 'apply'>>;
  records: Pick<RecordStore, 'readAll'>;
  relay: Pick<Relay, 'subscribe'>;
  jobs: Pick<RunningJobs, 'cancelUsers'>;
  log: Log;
}

/** A message may be lost; the record is not. */
const intervalMs = 1000;

/** Keeps the pools of this process at the operators' settings, and ends the jobs of removed users. */
export class SettingsFollower {
  readonly #deps: SettingsFollowerDeps;
  #timer: NodeJS.Timeout | undefined;

  constructor(deps: SettingsFollowerDeps) {
    this.#deps = deps;
  }

  /** Resolves once the settings are those of the records; rejects when the store does not answer. */
  async start(): Promise<void> {
    const { settings, relay } = this.#deps;
    // Before the records are read: a change in between is not missed.
    for (const id of settings.keys())
      await relay.subscribe(topics.settings(id), settingsRecordSchema, (record) => this.#apply(record));
    await this.read();
    this.#timer = setInterval(() => void this.read().catch(() => undefined), intervalMs);
  }

  /** Applies what the records say; rejects when the store does not answer. */
  async read(): Promise<void> {
    const { settings, records, jobs } = this.#deps;
    const keys = [removedUsersKey, ...[...settings.keys()].map(settingsKey)];
    const [removed, ...texts] = await records.readAll(keys);
    jobs.cancelUsers(decodeRemovedUsers(removed));
    for (const record of texts.map(decodeSettings)) if (record) this.#apply(record);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #apply({ provider, version, overrides }: ProviderSettings): void {
    const { settings, log } = this.#deps;
    if (settings.get(provider)?.apply({ version, overrides }))
      log.info({ provider, version, overrides }, 'settings changed');
  }
}
