import { setTimeout as delay } from 'node:timers/promises';
import { pruneAudit } from '../../db/audit.js';
import type { Database } from '../../db/database/client.js';
import { listPoolSettings } from '../../db/settings/pool-settings.js';
import { providerIds } from '../../shared/contracts/contract.js';
import type { FleetSettings } from '../../shared/fleet/live-settings.js';
import type { ProviderSettings } from '../../shared/protocol/settings.js';
import { copySettings, readSettings, type SettingsChannel } from '../../shared/queue/settings-records.js';
import type { Log } from '../../shared/runtime/log.js';

interface SettingsKeeperDeps {
  settings: FleetSettings;
  database: Database;
  channel: SettingsChannel;
  auditDays: number;
  log: Log;
}

const pauseMs = 5000;
/** The table is read, and the limits are compared, on every round of so many. */
const pausesToTable = 6;
/** Old entries of the audit are removed on one round of so many. */
const pausesToPrune = 720;

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
    const { database, auditDays, log } = this.#deps;
    const { signal } = this.#stopping;
    for (let pauses = 0; !signal.aborted; pauses += 1) {
      await this.keep({ withTable: pauses % pausesToTable === 0 });
      if (pauses % pausesToPrune === 1)
        await pruneAudit(database, auditDays).catch((err) => log.debug({ err }, 'audit not pruned'));
      await delay(pauseMs, undefined, { signal, ref: false }).catch(() => undefined);
    }
  }
}
