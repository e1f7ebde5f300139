import { setTimeout as delay } from 'node:timers/promises';
import { providerIds } from '../contract.js';
import { jobRecordTtlMs, queueName } from '../protocol/messages.js';
import type { Log } from '../runtime/log.js';
import { withTimeout } from '../runtime/with-timeout.js';
import type { QueueStore } from './queue-store.js';

/** What removes from the queue's store whatever nobody needs any more. */
export interface Pruner {
  stop(): Promise<void>;
}

interface UpkeepDeps {
  store: QueueStore;
  /**
   * The longest deadline that this process gives, in milliseconds: after it jobs that nobody finished are removed. Absent in a
   * process that gives none and so knows of none: it leaves them alone.
   */
  maxMs?: number;
  log: Log;
}

type Queue = ReturnType<QueueStore['createQueue']>;

/** All in milliseconds. */
interface UpkeepTimes {
  everyMs?: number;
  /** How long the records of finished jobs are kept. */
  keptMs?: number;
  /** How much longer than the longest deadline a job is kept that nobody finished. */
  marginMs?: number;
}

/**
 * Prompts and answers must not outlive their time, but BullMQ removes old records only when another job finishes, and
 * jobs that no worker takes and events never. So API and worker processes look after all queues, now and then: of those
 * that remove the same whoever takes the lease, one at a time and not again before half the time has passed. The store must be
 * ready; what fails is done the next time, and keeps nothing else from being done.
 */
export function startPruner({ store, maxMs, log }: UpkeepDeps, times: UpkeepTimes = {}): Pruner {
  const { everyMs = 10_000, keptMs = jobRecordTtlMs, marginMs = 60_000 } = times;
  const queues = providerIds.map((id) => store.createQueue(queueName(id)));
  const stopping = new AbortController();

  const tidy = async (queue: Queue) => {
    for (const state of finished) await removeOlder(queue, state, keptMs);
    if (maxMs !== undefined)
      for (const state of unfinished) await removeOlder(queue, state, maxMs + marginMs);
    // Last, because removing is an event as well.
    await store.forgetEvents(queue);
  };
  const tidyAll = async () => {
    for (const queue of queues) await attempt(() => tidy(queue));
    await attempt(() => store.records.removeEnded());
  };
  const attempt = (work: () => Promise<void>) => work().catch((err) => log.debug({ err }, 'prune failed'));
  const lease = leaseKey(maxMs === undefined ? 'ended' : 'all');
  /** The store ends the lease by itself, so the death of its holder delays nothing for long. */
  const isOurTurn = () =>
    store.records.create(lease, { value: '', ttlMs: Math.ceil(everyMs / 2) }).catch(() => false);
  const run = async () => {
    while (await pause(everyMs * (0.5 + Math.random()), stopping.signal)) {
      if (await isOurTurn()) await tidyAll();
    }
  };
  const running = run();
  const close = async () => {
    await running;
    await Promise.all(queues.map((queue) => queue.close()));
  };
  return {
    stop: () => {
      stopping.abort();
      return withTimeout(closingMs, close()).catch(() => undefined);
    },
  };
}

/** What a process removes: records of ended jobs and events, or unfinished jobs as well. */
const leaseKey = (removes: 'ended' | 'all'): string => `lease.upkeep.${removes}`;

/** How long the store may take to let go. */
const closingMs = 1000;
/** So that no command holds the store up for long. */
const maxAtOnce = 1000;
/** More than this waits for the next time. */
const maxBatches = 100;

const finished = ['completed', 'failed'] as const;
/**
 * No queue is ever paused. A job is left active when the last worker died with it, and delayed while it waits for a worker
 * of the newer release that added it.
 */
const unfinished = ['wait', 'prioritized', 'delayed', 'active'] as const;

async function removeOlder(
  queue: Queue,
  state: (typeof finished | typeof unfinished)[number],
  ageMs: number,
): Promise<void> {
  for (let batch = 0; batch < maxBatches; batch += 1) {
    const removed = await queue.clean(ageMs, maxAtOnce, state);
    if (removed.length < maxAtOnce) return;
  }
}

/** False when the signal aborts. */
const pause = (ms: number, signal: AbortSignal): Promise<boolean> =>
  delay(ms, true, { signal, ref: false }).catch(() => false);
