import { randomUUID } from 'node:crypto';
import type { Queue } from 'bullmq';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { LostJobs } from '../../../../api/chat/jobs/lost-jobs.js';
import { PendingReplies } from '../../../../api/chat/jobs/pending-replies.js';
import { StrandedJobs } from '../../../../api/chat/jobs/stranded-jobs.js';
import { type ProviderId, providerIds, type Target } from '../../../../shared/contract.js';
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

  const open = (isAbandoned = true, pendingReplies = new PendingReplies(), isRead = false) => {
    const deps = { queueOf, store: shared.store, pendingReplies, log };
    return new StrandedJobs({ ...deps, isAbandoned: () => isAbandoned, isRead: () => isRead });
  };
  const add = async (jobId: string, fallback: Target[] = [{ provider: 'bedrock' }]) => {
    const { store } = shared;
    const deadline = store.now() + 60_000;
    const turns = [{ role: 'user', content: 'Hello' } as const];
    const named = { provider: 'openai', model: 'm', fallback } as const;
    const payload = encodeChatJob({ v: 1, ...named, user: 'me', turns, deadline, replyTo: 'x' });
    await addJob(queueOf('openai'), store, { jobId, payload, priority: 3 });
    return { jobId, ...named };
  };
  const nextOf = (jobId: string) => queueOf('bedrock').getJob(jobIdOf(jobId, 2));

  /** Adds a job and passes it on; gives whom is waited for afterwards, and which jobs there are. */
  const passOn = async ({ isAbandoned = true, fallback = undefined as Target[] | undefined } = {}) => {
    const pendingReplies = new PendingReplies();
    const stranded = open(isAbandoned, pendingReplies);
    const pending = await add(randomUUID(), fallback);
    const { jobId } = pending;
    const waiting = pendingReplies.wait(pending, shared.store.now() + 60_000);
    await Promise.all([1, 2].map(() => stranded.passOn(pending)));
    const found = await Promise.all([queueOf('openai').getJob(jobId), nextOf(jobId)]);
    const current = pendingReplies.find(jobId);
    waiting.leave();
    return { jobs: found.map((job) => job?.data.provider), current };
  };

  it('passes a job on, once, and has its caller wait for the next', async () => {
    const { jobs, current } = await passOn();
    expect(jobs).toEqual([undefined, 'bedrock']);
    expect(current).toMatchObject({ provider: 'bedrock', attempt: 2, fallback: [] });
  });

  it('keeps its job from being added again before the answer to its removal has come', async () => {
    const pendingReplies = new PendingReplies();
    const stranded = open(true, pendingReplies);
    const isPassingOn = (jobId: string) => stranded.isPassingOn(jobId);
    const { store } = shared;
    const lostJobs = new LostJobs({ records: store.records, pendingReplies, isPassingOn, log });
    const pending = await add(randomUUID());
    const addAgain = vi.fn();
    const waiting = pendingReplies.wait(pending, store.now() + 60_000);
    waiting.onLost(addAgain);
    const remove = queueOf('openai').remove.bind(queueOf('openai'));
    const removing = vi.spyOn(queueOf('openai'), 'remove').mockImplementation(async (jobId) => {
      const removed = await remove(jobId);
      await lostJobs.report([pending], store.now());
      return removed;
    });
    await stranded.passOn(pending);
    removing.mockRestore();
    waiting.leave();
    expect(addAgain).not.toHaveBeenCalled();
    expect(stranded.isPassingOn(pending.jobId)).toBe(false);
  });

  it('tells what the attempt was, and how long it has waited', async () => {
    const pending = await add(randomUUID());
    await open().passOn(pending);
    const { earlier } = (await nextOf(pending.jobId))?.data ?? {};
    expect(earlier).toEqual([
      {
        ...{ provider: 'openai', model: 'm', code: 'provider_unavailable', retryable: true },
        ...{ queueMs: expect.any(Number), providerMs: 0 },
      },
    ]);
  });

  it('leaves a job alone that has ended meanwhile, and its outcome', async () => {
    const worker = shared.store.createWorker(queueName('openai'), async () => 'outcome', {});
    const completed = new Promise((resolve) => worker.once('completed', resolve));
    const pending = await add(randomUUID());
    await completed;
    await worker.close();
    await open().passOn(pending);
    expect((await queueOf('openai').getJob(pending.jobId))?.returnvalue).toBe('outcome');
    expect(await nextOf(pending.jobId)).toBeUndefined();
  });

  it('adds the next job also when the store fails after it has removed the first', async () => {
    const adding = vi.spyOn(queueOf('bedrock'), 'add').mockRejectedValueOnce(new Error('away'));
    const pending = await add(randomUUID());
    await open().passOn(pending);
    expect((await nextOf(pending.jobId))?.data.provider).toBe('bedrock');
    adding.mockRestore();
  });

  it('passes a whole queue on, ten at a time', async () => {
    const pending = await Promise.all(Array.from({ length: 25 }, () => add(randomUUID())));
    const remove = queueOf('openai').remove.bind(queueOf('openai'));
    let [running, most] = [0, 0];
    const removing = vi.spyOn(queueOf('openai'), 'remove').mockImplementation(async (jobId) => {
      running += 1;
      most = Math.max(most, running);
      return remove(jobId).finally(() => {
        running -= 1;
      });
    });
    const stranded = open();
    await Promise.all([...pending, ...pending].map((job) => stranded.passOn(job)));
    removing.mockRestore();
    expect(most).toBeLessThanOrEqual(10);
    const next = await Promise.all(pending.map(({ jobId }) => nextOf(jobId)));
    expect(next.filter((job) => job === undefined)).toEqual([]);
  });

  it('leaves a stream alone that has begun', async () => {
    const pending = await add(randomUUID());
    await open(true, new PendingReplies(), true).passOn(pending);
    expect(await nextOf(pending.jobId)).toBeUndefined();
  });

  it('leaves jobs alone that somebody takes, or that have no fallback', async () => {
    for (const options of [{ isAbandoned: false }, { fallback: [] }])
      expect((await passOn(options)).jobs).toEqual(['openai', undefined]);
  });
});
