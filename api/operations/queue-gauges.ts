import { type ProviderId, providerIds } from '../../shared/contract.js';
import type { ApiInstruments } from '../../shared/metrics/instruments.js';
import type { QueueDepth } from '../../shared/queue/queue-store.js';
import { singleFlight } from '../../shared/runtime/single-flight.js';
import { withTimeout } from '../../shared/runtime/with-timeout.js';

interface QueueSource {
  /** Rejects while the store is down. */
  measure(provider: ProviderId): Promise<QueueDepth>;
}

interface QueueGaugesDeps {
  metrics: Pick<ApiInstruments['metrics'], 'queueUp' | 'queueJobs' | 'oldestWaiting'>;
  /** Undefined until the queue store has been reached. */
  source: () => QueueSource | undefined;
  now?: () => number;
}

type Depths = readonly (readonly [ProviderId, QueueDepth])[];

/** No scrape waits longer than this for the store. */
const timeoutMs = 1000;

/**
 * Returns a function that sets the gauges from the store, or removes them while it does not answer; it never fails. They are
 * measured in the store and not taken from the heartbeats of the pools: whatever scales the pools from zero must see the
 * waiting jobs when there is no pool. One measurement at a time: while one hangs, every scrape waits for it up to the timeout.
 * `metricsPage` scrapes once a second at most, however many ask.
 */
export function createQueueGauges({ metrics, source, now = Date.now }: QueueGaugesDeps): () => Promise<void> {
  const measure = singleFlight(() => measureAll(source()), { apartMs: 0 });
  return async () => {
    const depths = await withTimeout(timeoutMs, measure()).catch(() => undefined);
    const at = now();
    metrics.queueUp.set({}, depths === undefined ? 0 : 1);
    metrics.queueJobs.reset();
    metrics.oldestWaiting.reset();
    for (const [provider, { waiting, active, oldestAddedAt = at }] of depths ?? []) {
      metrics.queueJobs.set({ provider, state: 'waiting' }, waiting);
      metrics.queueJobs.set({ provider, state: 'active' }, active);
      // The clock of the API process that added the job may be slightly ahead.
      metrics.oldestWaiting.set({ provider }, Math.max(0, at - oldestAddedAt) / 1000);
    }
  };
}

async function measureAll(source: QueueSource | undefined): Promise<Depths> {
  if (source === undefined) throw new Error('not connected');
  const measurements = providerIds.map(async (id) => [id, await source.measure(id)] as const);
  // The next measurement must not begin while a part of this one hangs.
  await Promise.allSettled(measurements);
  return Promise.all(measurements);
}
