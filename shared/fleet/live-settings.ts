import type { ProviderId } from '../contracts/contract.js';
import { topics } from '../protocol/messages.js';
import { type PoolOverrides, type ProviderSettings, settingsRecordSchema } from '../protocol/settings.js';
import type { Relay } from '../queue/relay.js';

const none: PoolOverrides = {};

/** The settings that operators have made for each provider, as far as this API process knows. */
export class FleetSettings {
  readonly #records = new Map<ProviderId, ProviderSettings>();

  /** Takes over what is published from now on. */
  follow(relay: Pick<Relay, 'subscribe'>): Promise<void> {
    return relay.subscribe(topics.allSettings, settingsRecordSchema, (record) => this.apply(record));
  }

  /** Takes over the settings unless those that are known are as new or newer. */
  apply(record: ProviderSettings): void {
    const known = this.#records.get(record.provider);
    if (known === undefined || record.version > known.version) this.#records.set(record.provider, record);
  }

  /** The settings that replace the environment; empty for a provider without any. */
  of(provider: ProviderId): PoolOverrides {
    return this.#records.get(provider)?.overrides ?? none;
  }

  recordOf(provider: ProviderId): ProviderSettings | undefined {
    return this.#records.get(provider);
  }
}
