import { type ProviderId, providerIds } from '../../shared/contract.js';
import type { ApiInstruments } from '../../shared/metrics/instruments.js';
import { intakes } from '../../shared/metrics/metrics.js';
import type { PoolOverrides } from '../../shared/protocol/settings.js';

/** The settings that operators have made for each provider, as this API process knows them. */
interface SettingsSource {
  readonly pools: {
    readonly settings: { of(provider: ProviderId): Pick<PoolOverrides, 'intake'> };
  };
}

/**
 * Has every scrape show whether a provider is open, paused or draining. Needs neither store: what was set stays in
 * force while they are down. Absent until the queue has been reached, when the settings are known.
 */
export function observeIntake(
  { metrics, onScrape }: Pick<ApiInstruments, 'metrics' | 'onScrape'>,
  source: () => SettingsSource | undefined,
): void {
  onScrape(() => {
    const settings = source()?.pools.settings;
    if (settings === undefined) return;
    for (const provider of providerIds) {
      const { intake = 'open' } = settings.of(provider);
      for (const state of intakes) metrics.intake.set({ provider, state }, state === intake ? 1 : 0);
    }
  });
}
