import { type ProviderId, providerIds } from '../../shared/contract.js';
import type { ApiInstruments } from '../../shared/metrics/instruments.js';
import type { QueueDepth } from '../../shared/queue/queue-store.js';
import { withTimeout } from '../../shared/runtime/with-timeout.js';
import type { JobClient } from '../chat/jobs/job-client.js';

/** What the queue store holds, as metrics. */
export interface QueueGauges {
  /** Sets the gauges to what the store says, or takes them away while it says nothing; never fails. */
  refresh(): Promise<void>;
}

interface QueueGaugesDeps {
  metrics: Pick<ApiInstruments['metrics'], 'queueUp' | 'queueJobs' | 'oldestWaiting'>;
  /** The channels to the workers, once the queue's store has been reached. */
  link: () => Pick<JobClient, 'measure'> | undefined;
  now?: () => number;
}

type Depths = readonly (readonly [ProviderId, QueueDepth])[];

/** However many scrape, the store is asked once a second at most. */
const freshMs = 1000;
/** Nobody who scrapes waits longer for the store than this. */
const patienceMs = 1000;

/**
 * Read from the store and not from the heartbeats of the pools, because what scales the pools from zero has to know what waits when
 * there is none. One look at a time: while one hangs, whoever scrapes waits for the same one, and then goes without.
 */
export function createQueueGauges({ metrics, link, now = Date.now }: QueueGaugesDeps): QueueGauges {
  let latest: { depths: Depths | undefined; at: number } | undefined;
  let looking: Promise<Depths | undefined> | undefined;

  const look = async (): Promise<Depths | undefined> => {
    const depths = await measureAll(link()).catch(() => undefined);
    latest = { depths, at: now() };
    looking = undefined;
    return depths;
  };
  const depths = async (): Promise<Depths | undefined> => {
    if (latest !== undefined && now() - latest.at < freshMs) return latest.depths;
    looking ??= look();
    return withTimeout(patienceMs, looking).catch(() => undefined);
  };
  return {
    refresh: async () => {
      const found = await depths();
      const at = now();
      metrics.queueUp.set({}, found === undefined ? 0 : 1);
      metrics.queueJobs.reset();
      metrics.oldestWaiting.reset();
      for (const [provider, { waiting, active, oldestAddedAt = at }] of found ?? []) {
        metrics.queueJobs.set({ provider, state: 'waiting' }, waiting);
        metrics.queueJobs.set({ provider, state: 'active' }, active);
        // The clock of the API process that added it may be a little ahead.
        metrics.oldestWaiting.set({ provider }, Math.max(0, at - oldestAddedAt) / 1000);
      }
    },
  };
}

async function measureAll(link: Pick<JobClient, 'measure'> | undefined): Promise<Depths> {
  if (link === undefined) throw new Error('not linked');
  const looks = providerIds.map(async (id) => [id, await link.measure(id)] as const);
  // The next look does not begin while a part of this one hangs.
  await Promise.allSettled(looks);
  return Promise.all(looks);
}
