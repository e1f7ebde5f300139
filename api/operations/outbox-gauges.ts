import type { ApiInstruments } from '../../shared/metrics/instruments.js';
import type { QueueStore } from '../../shared/queue/queue-store.js';

/** Sets the gauges of the ledger's outbox at each scrape, or removes them while the store does not answer. */
export function observeOutbox(
  { metrics, onScrape }: Pick<ApiInstruments, 'metrics' | 'onScrape'>,
  { outbox, now }: Pick<QueueStore, 'outbox' | 'now'>,
): void {
  onScrape(async () => {
    const size = await outbox.size().catch(() => undefined);
    metrics.outboxEntries.reset();
    metrics.outboxAge.reset();
    if (size === undefined) return;
    const { entries, oldestAt = now() } = size;
    metrics.outboxEntries.set({}, entries);
    metrics.outboxAge.set({}, Math.max(0, now() - oldestAt) / 1000);
  });
}
