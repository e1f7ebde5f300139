import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { JobResults } from '../../../../api/chat/jobs/job-results.js';
import { PendingReplies } from '../../../../api/chat/jobs/pending-replies.js';
import { parseConfig } from '../../../../shared/config/config.js';
import { queueName } from '../../../../shared/protocol/messages.js';
import type { QueueStore } from '../../../../shared/queue/queue-store.js';
import { openQueueStore } from '../../../../shared/queue/stores/open.js';
import { patienceMs } from '../../../support/patience.js';
import { createRecordingLog } from '../../../support/recording-log.js';
import { findStores, freshStore } from '../../../support/stores.js';

const choice = (await findStores()).find(({ name }) => name === 'redis');
const waiters = 5000;

describe('poll', () => {
  if (choice?.servedBy === undefined) return it.skip(`(${choice?.missing})`);

  let url: string;
  let store: QueueStore;
  let stop: () => Promise<void>;
  beforeAll(async () => {
    const started = await choice.start();
    stop = started.stop;
    const variables = await freshStore(started.server);
    url = variables.REDIS_URL ?? '';
    store = openQueueStore(parseConfig(variables, 'config'), createRecordingLog().log);
    await store.whenReady(AbortSignal.timeout(patienceMs));
  });
  afterAll(async () => {
    await store?.close();
    await stop?.();
  });

  it(`takes less than a tenth of a second of Redis' processor for ${waiters} jobs`, async () => {
    const { log } = createRecordingLog();
    const queue = store.createQueue(queueName('openai'));
    const pendingReplies = new PendingReplies();
    const stranded = { passOn: async () => undefined, isPassingOn: () => false };
    const results = new JobResults({ queueOf: () => queue, store, pendingReplies, stranded, log });
    const jobs = Array.from({ length: waiters }, (_, n) => ({
      jobId: `job-${n}`,
      provider: 'openai' as const,
    }));
    const data = { turns: 'x'.repeat(2000) };
    const adds = jobs.map(({ jobId }) => ({ name: 'chat', data, opts: { jobId } }));
    // In parts, each of which a slow machine also does within the connection's timeout.
    for (let start = 0; start < adds.length; start += 250)
      await queue.addBulk(adds.slice(start, start + 250));
    const redis = new Redis(url);
    const before = await cpuMs(redis);
    expect(await results.poll(jobs)).toEqual([]);

    expect((await cpuMs(redis)) - before).toBeLessThan(100);
    redis.disconnect();
    await queue.close();
  });
});

/** What the server has spent so far. */
async function cpuMs(redis: Redis): Promise<number> {
  const info = await redis.info('cpu');
  const seconds = (name: string) => Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(info)?.[1]);
  return 1000 * (seconds('used_cpu_user') + seconds('used_cpu_sys'));
}
