import { afterEach, expect, it, vi } from 'vitest';
import { providerIds } from '../../../shared/contracts/contract.js';
import { queueName } from '../../../shared/protocol/messages.js';
import { startPruner } from '../../../shared/queue/pruner.js';
import type { QueueStore } from '../../../shared/queue/queue-store.js';
import { patience } from '../../support/patience.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { describeStores } from '../../support/shared-store.js';

const { log } = createRecordingLog();
const everyMs = 10;

describeStores('the pruner of a $kind store', log, (shared) => {
  const pruners: { stop(): Promise<void> }[] = [];
  afterEach(() => Promise.all(pruners.splice(0).map((pruner) => pruner.stop())));
  const prune = (...given: Parameters<typeof startPruner>) => void pruners.push(startPruner(...given));

  it('runs in a process that gives no deadlines → unfinished jobs stay, and finished ones go', async () => {
    const { store } = shared;
    const [first, last] = ['anthropic', 'vertexai'] as const;
    const queues = [first, last].map((id) => store.createQueue(queueName(id)));
    const worker = store.createWorker(queueName(last), async () => 'done', {});
    const completed = new Promise((resolve) => worker.once('completed', resolve));
    await Promise.all(queues.map((queue) => queue.add('chat', {}, { jobId: 'old' })));
    await completed;
    await worker.close();
    prune({ store, log }, { everyMs, keptMs: 0, marginMs: -10_000 });
    // Queues are tidied one after the other.
    await vi.waitFor(async () => expect(await queues[1]?.getJobState('old')).toBe('unknown'), patience);
    expect(await queues[0]?.getJobState('old')).toBe('waiting');
    await Promise.all(queues.map((queue) => queue.close()));
  });

  it('finds that another process prunes → leaves it to that one until its lease ends', async () => {
    const { store } = shared;
    const leases: string[] = [];
    let pruned = 0;
    let isHeld = true;
    const records: QueueStore['records'] = {
      ...store.records,
      create: async (key) => {
        leases.push(key);
        return !isHeld;
      },
      removeEnded: async () => {
        pruned += 1;
      },
    };
    for (const maxMs of [60_000, 60_000]) prune({ store: { ...store, records }, maxMs, log }, { everyMs });
    await vi.waitFor(() => expect(leases.length).toBeGreaterThan(4), patience);
    expect([new Set(leases).size, pruned]).toEqual([1, 0]);
    isHeld = false;
    await vi.waitFor(() => expect(pruned).toBeGreaterThan(0), patience);
  });

  it('cannot tidy a queue → removes what has ended elsewhere all the same', async () => {
    const { store } = shared;
    const reached = Promise.withResolvers<void>();
    const removeEnded = async () => reached.resolve();
    const tidied: string[] = [];
    const forgetEvents = (queue: { name: string }) => {
      tidied.push(queue.name);
      return Promise.reject(new Error('cannot be tidied'));
    };
    prune(
      { store: { ...store, forgetEvents, records: { ...store.records, removeEnded } }, log },
      { everyMs },
    );
    await reached.promise;
    expect(tidied).toEqual(providerIds.map(queueName));
  });
});
