import { randomUUID } from 'node:crypto';
import type { Queue } from 'bullmq';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PendingReplies } from '../../../../api/chat/jobs/pending-replies.js';
import { StrandedJobs } from '../../../../api/chat/jobs/stranded-jobs.js';
import { type ProviderId, providerIds } from '../../../../shared/contract.js';
import { jobIdOf } from '../../../../shared/protocol/attempts.js';
import { encodeChatJob, queueName } from '../../../../shared/protocol/messages.js';
import { addJob } from '../../../../shared/queue/add-attempt.js';
import { createRecordingLog } from '../../../support/recording-log.js';
import { type SharedStore, startSharedStore } from '../../../support/shared-store.js';
import { findStores } from '../../../support/stores.js';

const stores = await findStores();

describe.each(stores)('StrandedJobs in $name', (choice) => {
  if (choice.servedBy === undefined) return it.skip(`(${choice.missing})`);

  const { log } = createRecordingLog();
  let shared: SharedStore;
  let queues: ReadonlyMap<ProviderId, Queue>;
  beforeAll(async () => {
    shared = await startSharedStore(choice, log);
    queues = new Map(providerIds.map((id) => [id, shared.store.createQueue(queueName(id))]));
  });
  afterAll(async () => {
    await Promise.all([...(queues?.values() ?? [])].map((queue) => queue.close()));
    await shared?.stop();
  });
  const queueOf = (id: ProviderId) => queues.get(id) as Queue;

  /** Adds a job and passes it on; gives whom is waited for afterwards, and which jobs there are. */
  const passOn = async ({ isAbandoned = true, fallback = [{ provider: 'bedrock' as const }] } = {}) => {
    const jobId = randomUUID();
    const pendingReplies = new PendingReplies();
    const { store } = shared;
    const stranded = new StrandedJobs({
      queueOf,
      store,
      pendingReplies,
      isAbandoned: () => isAbandoned,
      log,
    });
    const deadline = store.now() + 60_000;
    const turns = [{ role: 'user', content: 'Hello' } as const];
    const payload = encodeChatJob({ v: 1, provider: 'openai', turns, deadline, replyTo: 'x', fallback });
    await addJob(queueOf('openai'), store, { jobId, payload, priority: 3 });
    const waiting = pendingReplies.wait({ jobId, provider: 'openai', fallback }, deadline);
    await Promise.all([1, 2].map(() => stranded.passOn({ jobId, provider: 'openai', fallback })));
    const found = await Promise.all([
      queueOf('openai').getJob(jobId),
      queueOf('bedrock').getJob(jobIdOf(jobId, 2)),
    ]);
    const current = pendingReplies.find(jobId);
    waiting.leave();
    return { jobs: found.map((job) => job?.data.provider), current };
  };

  it('passes a job on, once, and has its caller wait for the next', async () => {
    const { jobs, current } = await passOn();
    expect(jobs).toEqual([undefined, 'bedrock']);
    expect(current).toMatchObject({ provider: 'bedrock', attempt: 2, fallback: [] });
  });

  it('leaves jobs alone that somebody takes, or that have no fallback', async () => {
    for (const options of [{ isAbandoned: false }, { fallback: [] }])
      expect((await passOn(options)).jobs).toEqual(['openai', undefined]);
  });
});
