import { describeProviders } from '../../shared/fleet/fleet.js';
import type { FleetSource, FleetState } from '../../shared/fleet/fleet-state.js';
import type { LivePools } from '../../shared/fleet/live-pools.js';
import type { ApiInstruments } from '../../shared/metrics/instruments.js';
import { intakes } from '../../shared/metrics/metrics.js';

interface QueueGaugesDeps {
  instruments: Pick<ApiInstruments, 'onScrape' | 'metrics'>;
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

/**
 * Shows at each scrape what is known of a provider here: its intake, and whether its chats fail, as on the board. Shows
 * nothing until the queue has been reached.
 */
export function observeProviders(
  { metrics, onScrape }: Pick<ApiInstruments, 'metrics' | 'onScrape'>,
  source: Pick<FleetSource, 'heartbeats' | 'isConnected'> & { readonly pools: Pick<LivePools, 'settings'> },
): void {
  onScrape(() => {
    if (!source.isConnected) return;
    for (const { provider, failing } of describeProviders(source.heartbeats)) {
      metrics.failing.set({ provider }, failing ? 1 : 0);
      const { intake = 'open' } = source.pools.settings.of(provider);
      for (const state of intakes) metrics.intake.set({ provider, state }, state === intake ? 1 : 0);
    }
  });
}
