import type { Queue } from 'bullmq';
import type { ChildProgram } from '../../../dev/child-program.js';
import { parseConfig } from '../../../shared/config/config.js';
import { type ProviderId, providerIds } from '../../../shared/contracts/contract.js';
import { queueName } from '../../../shared/protocol/messages.js';
import { openQueueStore } from '../../../shared/queue/stores/open.js';
import type { Deployment } from '../../support/deployment.js';
import { createRecordingLog } from '../../support/recording-log.js';

/** The queues of a deployment, seen from outside. */
export interface JobBoard {
  /** Resolves when the store can be asked. */
  ready(): Promise<void>;
  queue(provider: ProviderId): Queue;
  /** Jobs that wait or run, over all queues; rejects while the store is away. */
  unfinished(): Promise<number>;
  /** The worker that runs the provider's jobs; rejects when it runs none. */
  workerOf(provider: ProviderId): Promise<ChildProgram>;
  /** Entries of the ledger on their way. */
  outboxEntries(): Promise<number>;
  close(): Promise<void>;
}

/** Opens the queues where the deployment has them. */
export function openJobBoard({ stores, programs }: Pick<Deployment, 'stores' | 'programs'>): JobBoard {
  const store = openQueueStore(parseConfig(stores, 'migrate'), createRecordingLog().log);
  const queues = new Map(providerIds.map((id) => [id, store.createQueue(queueName(id))]));
  const queue = (id: ProviderId): Queue => {
    const found = queues.get(id);
    if (found === undefined) throw new TypeError('no such queue');
    return found;
  };
  return {
    ready: async () => {
      if (!(await store.whenReady(AbortSignal.timeout(60_000)))) throw new Error('the store cannot be asked');
    },
    queue,
    unfinished: async () => {
      const counts = await Promise.all(
        providerIds.map((id) => queue(id).getJobCounts('waiting', 'active', 'delayed', 'prioritized')),
      );
      return counts.flatMap((count) => Object.values(count)).reduce((sum, jobs) => sum + jobs, 0);
    },
    workerOf: async (provider) => {
      const [job] = await queue(provider).getActive();
      // A worker's name is its host's, its process id, and something random.
      const worker = programs.find(({ pid }) => job?.processedBy?.includes(`-${pid}-`));
      if (worker === undefined) throw new TypeError('no worker runs a job of this provider');
      return worker;
    },
    outboxEntries: async () => (await store.outbox.size()).entries,
    close: async () => {
      await Promise.all([...queues.values()].map((open) => open.close().catch(() => undefined)));
      await store.close();
    },
  };
}
