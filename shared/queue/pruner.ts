import { setTimeout as delay } from 'node:timers/promises';
import type { ProviderId } from '../contracts/contract.js';
import { jobRecordTtlMs } from '../protocol/messages.js';
import type { Log } from '../runtime/log.js';
import { closedInTime } from '../runtime/retry.js';
import { closeQueues, openQueues } from './channels.js';
import type { LostRuns, QueueStore, UnfinishedState } from './queue-store.js';

export interface PrunerDeps {
  store: QueueStore;
  /** Longest deadline of a job that this process adds, in milliseconds. Without it no unfinished job is removed. */
  maxMs?: number;
  /** Hears of the lost runs of jobs before they are removed; when it rejects, they stay until the next time. */
  onLost?: (provider: ProviderId, lost: LostRuns[]) => Promise<void>;
  log: Log;
}

type Queue = ReturnType<QueueStore['createQueue']>;

/** All in milliseconds. */
interface PrunerTimes {
  everyMs?: number;
  /** How long finished jobs are stored. */
  keptMs?: number;
  /** How much longer than the longest deadline unfinished jobs are stored. */
  marginMs?: number;
}

/**
 * Removes prompts, images and answers when their time is over: BullMQ does so only when another job finishes, and never
 * removes events or jobs that no worker takes (docs/internals.md, "What is pruned, and when"). The store must be ready.
 */
export function startPruner(
  { store, maxMs, onLost, log }: PrunerDeps,
  times: PrunerTimes = {},
): { stop(): Promise<void> } {
  const { everyMs = 10_000, keptMs = jobRecordTtlMs, marginMs = 60_000 } = times;
  const queues = openQueues(store);
  const stopping = new AbortController();

  const removeOldest = async (provider: ProviderId, queue: Queue, state: UnfinishedState) => {
    if (maxMs === undefined) return [];
    const addedBefore = Date.now() - maxMs - marginMs;
    if (onLost) {
      const lost = await store.lostRunsOfOldest(queue, { state, addedBefore, limit: maxAtOnce });
      if (lost.length > 0) await onLost(provider, lost);
    }
    // Not those that became old enough meanwhile.
    return queue.clean(Date.now() - addedBefore, maxAtOnce, state);
  };
  const prune = async (provider: ProviderId, queue: Queue) => {
    for (const state of finished) await inBatches(() => queue.clean(keptMs, maxAtOnce, state));
    for (const state of unfinished)
      await attempt(() => inBatches(() => removeOldest(provider, queue, state)));
    // Last, because each removal adds an event.
    await store.forgetEvents(queue);
  };
  const pruneAll = async () => {
    for (const [provider, queue] of queues) await attempt(() => prune(provider, queue));
    await attempt(() => store.records.removeEnded());
    await attempt(() => store.blobs.removeEnded());
  };
  const attempt = (work: () => Promise<void>) => work().catch((err) => log.debug({ err }, 'prune failed'));
  // One for processes that remove finished jobs and events, another for those that also remove unfinished jobs.
  const lease = `lease.upkeep.${maxMs === undefined ? 'ended' : 'all'}`;
  /** The lease expires by itself, so a process that dies with it delays little. */
  const hasLease = () =>
    store.records.create(lease, { value: '', ttlMs: Math.ceil(everyMs / 2) }).catch(() => false);
  const run = async () => {
    while (await pause(everyMs * (0.5 + Math.random()), stopping.signal)) {
      if (await hasLease()) await pruneAll();
    }
  };
  const running = run();
  return {
    stop: () => {
      stopping.abort();
      return closedInTime(running.then(() => closeQueues(queues)));
    },
  };
}

/** Keeps each command short. */
const maxAtOnce = 1000;
/** The rest waits for the next period. */
const maxBatches = 100;

const finished = ['completed', 'failed'] as const;
/** A job stays active when the last worker died with it, and delayed while it waits for a worker of a newer release. */
const unfinished = ['wait', 'prioritized', 'delayed', 'active'] as const;

async function inBatches(remove: () => Promise<string[]>): Promise<void> {
  for (let batch = 0; batch < maxBatches; batch += 1) {
    const removed = await remove();
    if (removed.length < maxAtOnce) return;
  }
}

/** False when the signal aborts. */
const pause = (ms: number, signal: AbortSignal): Promise<boolean> =>
  delay(ms, true, { signal, ref: false }).catch(() => false);
