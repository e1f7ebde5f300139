import type { ProviderId } from '../../shared/contracts/contract.js';
import { topics } from '../../shared/protocol/messages.js';
import { decodeRemovedUsers, removedUsersKey } from '../../shared/protocol/removed-users.js';
import {
  decodeSettings,
  type ProviderSettings,
  settingsKey,
  settingsRecordSchema,
} from '../../shared/protocol/settings.js';
import type { RecordStore } from '../../shared/queue/queue-store.js';
import type { Relay } from '../../shared/queue/relay.js';
import type { Log } from '../../shared/runtime/log.js';
import type { RunningJobs } from '../job/running-jobs.js';
import type { LiveSettings } from './live-settings.js';

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
