import { providerIds } from '../../shared/contract.js';
import type { FleetState } from '../../shared/fleet/fleet-state.js';
import type { LivePools } from '../../shared/fleet/live-pools.js';
import type { ApiInstruments } from '../../shared/metrics/instruments.js';
import { intakes } from '../../shared/metrics/metrics.js';

interface QueueGaugesDeps {
  instruments: Pick<ApiInstruments, 'onScrape'> & {
    metrics: Pick<ApiInstruments['metrics'], 'queueUp' | 'queueJobs' | 'oldestWaiting'>;
  };
  fleet: Pick<FleetState, 'readDepths'>;
  /** The time, in milliseconds since the epoch. */
  now?: () => number;
}

/**
 * Sets the gauges of the queues at each scrape, or removes them while the store does not answer. What waits is counted
 * in the store and not taken from the heartbeats of the pools: a program that starts pools when jobs wait must see the
 * jobs when there is no pool.
 */
export function observeQueues({ instruments, fleet, now = Date.now }: QueueGaugesDeps): void {
  const { queueUp, queueJobs, oldestWaiting } = instruments.metrics;
  instruments.onScrape(async () => {
    const depths = await fleet.readDepths();
    const at = now();
    queueUp.set({}, depths === undefined ? 0 : 1);
    queueJobs.reset();
    oldestWaiting.reset();
    for (const [provider, { waiting, active, oldestAddedAt = at }] of depths ?? []) {
      queueJobs.set({ provider, state: 'waiting' }, waiting);
      queueJobs.set({ provider, state: 'active' }, active);
      // The clock of the API process that added the job may be slightly ahead.
      oldestWaiting.set({ provider }, Math.max(0, at - oldestAddedAt) / 1000);
    }
  });
}

/** Shows at each scrape whether a provider is open, paused or draining, also while both stores are down. */
export function observeIntake(
  { metrics, onScrape }: Pick<ApiInstruments, 'metrics' | 'onScrape'>,
  source: () => { readonly pools: Pick<LivePools, 'settings'> } | undefined,
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
