import { once } from 'node:events';
import { Redis } from 'ioredis';
import pg from 'pg';
import { expect, it, onTestFinished, vi } from 'vitest';
import { listJobs } from '../../../api/admin/pool-jobs.js';
import { queueName } from '../../../shared/protocol/messages.js';
import { startPruner } from '../../../shared/queue/pruner.js';
import type { WorkerTuning } from '../../../shared/queue/queue-store.js';
import { patience } from '../../support/patience.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { describeStores } from '../../support/shared-store.js';

describeStores('jobs in $kind', createRecordingLog().log, (shared, kind) => {
  const openQueue = (name: string) => {
    const queue = shared.store.createQueue(name);
    onTestFinished(() => queue.close());
    return queue;
  };
  /** Takes jobs one by one, when told. */
  const openTaker = (queue: string, settings: WorkerTuning = {}) => {
    const options = { autorun: false, lockDuration: 60_000, ...settings };
    const worker = shared.store.createWorker(queue, async () => undefined, options);
    onTestFinished(() => worker.close(true));
    return worker;
  };
  const token = 'token';
  /** Locks no job for longer than a millisecond, as if it died at once. */
  const dying = { lockDuration: 1 };
  const far = () => Date.now() + 3_600_000;

  it('the lost runs of jobs -> those that stalled, and of an active one without a lock one more', async () => {
    const { store } = shared;
    const queue = openQueue('lost');
    const [alive, dead] = [openTaker('lost'), openTaker('lost', dying)];
    const lostOf = async (...ids: string[]) => {
      const runs = await store.lostRuns(queue, ids);
      return Object.fromEntries(runs.map(({ id, lost }) => [id, lost]));
    };
    const take = async (jobId: string, taker: typeof alive) => {
      await queue.add('a name', {}, { jobId, timestamp: 1000 });
      return taker.getNextJob(token, { block: false });
    };
    await take('repeated', dead);
    await vi.waitFor(async () => expect(await lostOf('repeated')).toEqual({ repeated: 1 }), patience);
    const checker = openTaker('lost', { stalledInterval: 10 });
    const stalled = once(checker, 'stalled');
    await checker.startStalledCheckTimer();
    await stalled;
    await checker.close();
    expect(await store.lostRuns(queue, ['repeated'])).toEqual([
      { id: 'repeated', name: 'a name', addedAt: 1000, lost: 1 },
    ]);
    await dead.getNextJob(token, { block: false });
    await (await take('handed-back', alive))?.moveToDelayed(far(), token);
    await (await take('ended', alive))?.moveToCompleted('outcome', token, false);
    await take('runs', alive);
    await take('silent', dead);
    await queue.add('a name', {}, { jobId: 'waits' });
    await vi.waitFor(async () => {
      const found = await lostOf('waits', 'silent', 'none', 'runs', 'ended', 'handed-back', 'repeated');
      const expected = { waits: 0, silent: 1, runs: 0, ended: 0, 'handed-back': 0, repeated: 2 };
      expect(Object.entries(found)).toEqual(Object.entries(expected));
    }, patience);
    expect(await store.lostRuns(queue, [])).toEqual([]);
  });

  /** Says of all jobs that they have stalled once. */
  const markStalled = async (name: string, keys: readonly string[]) => {
    if (kind === 'redis') {
      const redis = new Redis(shared.url);
      await Promise.all(keys.map((key) => redis.hset(key, 'stc', 1)));
      return redis.disconnect();
    }
    const client = new pg.Client({ connectionString: shared.url });
    await client.connect();
    await client.query('update bullmq.job set stalled_count = 1 where queue = $1', [name]);
    return client.end();
  };

  it('the lost runs of the oldest jobs -> those of the jobs that BullMQ removes next', async () => {
    const { store } = shared;
    const queue = openQueue('oldest');
    const dead = openTaker('oldest', dying);
    const at = Date.now() - 86_400_000;
    const ids: string[] = [];
    const add = async (options: object) => {
      for (let n = 0; n < 6; n += 1) {
        const { id = '' } = await queue.add('job', {}, { timestamp: at + n * 60_000, ...options });
        ids.push(id);
      }
    };
    await add({});
    for (let n = 0; n < 6; n += 1) await dead.getNextJob(token, { block: false });
    await vi.waitUntil(
      async () => (await store.lostRuns(queue, ids)).every(({ lost }) => lost === 1),
      patience,
    );
    for (const options of [{}, { priority: 2 }, { priority: 1 }, { delay: 3_600_000 }]) await add(options);
    await markStalled(
      'oldest',
      ids.map((id) => queue.toKey(id)),
    );
    const [now, limit] = [Date.now(), 3];
    const removed: number[] = [];
    for (const state of ['wait', 'prioritized', 'delayed', 'active'] as const)
      for (const addedBefore of [at + 90_000, now]) {
        const lost = await store.lostRunsOfOldest(queue, { state, addedBefore, limit });
        const gone = await queue.clean(Date.now() - addedBefore, limit, state);
        expect(new Set(lost.map(({ id }) => id))).toEqual(new Set(gone));
        removed.push(gone.length);
      }
    // In Redis it looks at three jobs of all ages, and an active one is as old as its start.
    const [prioritized, active] = kind === 'redis' ? [2, 0] : [3, 2];
    expect(removed).toEqual([2, 3, prioritized, 3, 2, 3, active, 3]);
  });

  it('jobs whose workers died -> the pruner tells of them before they go, and keeps them while it cannot', async () => {
    const { store } = shared;
    const queue = openQueue(queueName('bedrock'));
    const dead = openTaker(queue.name, dying);
    const add = (jobId: string) => queue.add('a name', {}, { jobId, timestamp: 1_700_000_000_000 });
    await add('taken');
    await dead.getNextJob(token, { block: false });
    await add('untaken');
    const runs = () => store.lostRuns(queue, ['taken', 'untaken']);
    await vi.waitFor(async () => expect(await runs()).toMatchObject([{ lost: 1 }, { lost: 0 }]), patience);
    const told: unknown[] = [];
    const onLost = async (...lost: unknown[]) => {
      told.push([...lost, await queue.getJobState('taken')]);
      if (told.length === 1) throw new Error('cannot be told');
    };
    const { log } = createRecordingLog();
    const pruner = startPruner({ store, maxMs: 0, onLost, log }, { everyMs: 10, marginMs: 0 });
    onTestFinished(() => pruner.stop());
    await vi.waitFor(async () => expect(await runs()).toEqual([]), patience);
    const lost = [{ id: 'taken', name: 'a name', addedAt: 1_700_000_000_000, lost: 1 }];
    expect(told).toEqual(Array.from({ length: 2 }, () => ['bedrock', lost, 'active']));
  });

  it('what waits -> is listed page by page in the order in which it runs, and no text is read', async () => {
    const { store } = shared;
    const queue = openQueue('waiting');
    const data = { text: 'x'.repeat(100_000) };
    const add = (jobId: string, priority = 0) => queue.add('chat', data, { jobId, priority });
    for (let n = 0; n < 100; n += 1) await add(`plain-${n}`);
    for (let n = 0; n < 100; n += 1) await add(`later-${n}`, [3, 1, 100][n % 3]);
    const taker = openTaker('waiting');
    for (let n = 0; n < 3; n += 1) await (await taker.getNextJob(token, { block: false }))?.moveToWait(token);
    const commands: string[][] = [];
    if (kind === 'redis') {
      const redis = await new Redis(shared.url).monitor();
      onTestFinished(() => redis.disconnect());
      redis.on('monitor', (_: string, args: string[]) => commands.push(args));
    }

    const listed: { id: string; place: number | null }[] = [];
    for (let offset: string | null = '0'; offset !== null; ) {
      const page = await listJobs({ queueOf: () => queue, store }, 'openai', {
        ...{ state: 'waiting', limit: 60 },
        ...(offset !== '0' && { offset }),
      });
      listed.push(...page.data);
      offset = page.next;
    }
    await store.lostRuns(
      queue,
      listed.map(({ id }) => id),
    );
    const ofQueue = commands.filter((args) => args.some((arg) => arg.includes(queue.toKey(''))));
    expect(ofQueue.length > 0).toBe(kind === 'redis');
    expect(ofQueue.filter(([name, ...args]) => name === 'hgetall' || args.includes('data'))).toEqual([]);
    expect(listed.map(({ place }) => place)).toEqual(Array.from({ length: 200 }, (_, n) => n + 1));

    const ran: string[] = [];
    const all = Promise.withResolvers<void>();
    const run = async ({ id = '' }: { id?: string | undefined }) => {
      if (ran.push(id) === 200) all.resolve();
    };
    const worker = store.createWorker('waiting', run, { concurrency: 1 });
    await all.promise;
    await worker.close();
    expect(listed.map(({ id }) => id)).toEqual(ran);
  });
});
