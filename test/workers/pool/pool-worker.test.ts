import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { parseConfig } from '../../../shared/config/config.js';
import { encodeChatJob, queueName } from '../../../shared/protocol/messages.js';
import { decodeOutcome } from '../../../shared/protocol/outcome.js';
import { closeQueues, openQueues, type Queues } from '../../../shared/queue/channels.js';
import { DeltaPublisher } from '../../../workers/job/delta-publisher.js';
import { NextAttempts } from '../../../workers/job/next-attempt.js';
import { RunningJobs } from '../../../workers/job/running-jobs.js';
import { Slots } from '../../../workers/job/slots.js';
import { PoolWorker } from '../../../workers/pool/pool-worker.js';
import { classifyError } from '../../../workers/providers/error-classification.js';
import type { Provider } from '../../../workers/providers/provider.js';
import { openCircuits } from '../../support/circuits.js';
import { poolMetrics } from '../../support/metrics.js';
import { patience } from '../../support/patience.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { createRecordingRelay, type RecordingRelay } from '../../support/recording-relay.js';
import { type SharedStore, startSharedStore } from '../../support/shared-store.js';
import { findStores } from '../../support/stores.js';

const stores = await findStores();
const logged = createRecordingLog();
const { log } = logged;
const provider: Provider = {
  id: 'openai',
  run: async () => ({ text: 'Hello', reason: 'stop', model: 'm' }),
  close: () => {},
};

const refuse = () => {
  throw classifyError(new Error('no'), { status: 400 });
};

describe.each(stores)('PoolWorker on $name', (choice) => {
  if (choice.servedBy === undefined) return it.skip(`(${choice.missing})`);

  let shared: SharedStore;
  let queue: ReturnType<SharedStore['store']['createQueue']>;
  let queues: Queues;
  let open: ReturnType<typeof openCircuits>;
  let relay: RecordingRelay;
  let jobs: RunningJobs;
  const closing: (() => Promise<void>)[] = [];

  beforeAll(async () => {
    shared = await startSharedStore(choice, log);
    queue = shared.another.createQueue(queueName('openai'));
    queues = openQueues(shared.store);
  });
  afterAll(async () => {
    await queue?.close();
    if (queues) await closeQueues(queues);
    await shared?.stop();
  });
  beforeEach(() => {
    open = openCircuits();
    relay = createRecordingRelay();
    jobs = new RunningJobs();
  });
  afterEach(async () => {
    open.close();
    for (const close of closing.splice(0)) await close();
  });

  const start = async (
    ownProvider = provider,
    { concurrency = 2, lockMs = 15_000, store = shared.store } = {},
  ) => {
    const worker = new PoolWorker({
      provider: ownProvider,
      settings: {
        current: {
          concurrency,
          timeoutMs: 5000,
          firstTokenTimeoutMs: 40_000,
          idleTimeoutMs: 20_000,
          model: 'm',
          maxOutputTokens: 1,
          breakerResetMs: 60_000,
        },
      },
      config: parseConfig(
        { DATABASE_URL: 'postgres://127.0.0.1/none', WORKER_LOCK_MS: String(lockMs) },
        'config',
      ),
      store,
      relay,
      deltas: new DeltaPublisher({ jobs, relay, windowMs: 1, log }),
      nextAttempts: new NextAttempts({ store: shared.store, queues, log }),
      jobs,
      workerName: 'test',
      ...open,
      slots: new Slots({ size: () => concurrency, onChange: () => {} }),
      times: { meanMs: 0 },
      listeners: [],
      backlog: { forget: () => {}, recordEmpty: () => {} },
      metrics: poolMetrics,
      log,
    });
    closing.push(() => worker.close({ graceMs: 60_000 }));
    await worker.start();
    return worker;
  };
  const add = async () => {
    const jobId = randomUUID();
    const turns = [{ role: 'user', content: 'Hello' } as const];
    const deadline = Date.now() + 60_000;
    const job = { v: 1, provider: 'openai', user: 'me', turns, deadline, replyTo: 'node' } as const;
    await queue.add('chat', encodeChatJob(job), { jobId });
    return jobId;
  };

  it('gives a job in a cooldown to the next worker when it closes, however often', async () => {
    const jobId = await add();
    // More often than a job may be started that takes its workers down.
    for (let n = 0; n < 3; n += 1) {
      open = openCircuits();
      open.circuits.of('m').cooldown.extend(50_000);
      const worker = await start();
      await vi.waitFor(() => expect(jobs.ofChat(jobId)).toHaveLength(1), patience);
      open.circuits.close();
      const startedAt = performance.now();
      await worker.close({ graceMs: 60_000 });
      // And not when the cooldown is over.
      expect(performance.now() - startedAt).toBeLessThan(40_000);
      expect(await queue.getJobState(jobId)).toBe('waiting');
      expect(jobs.loadOf('openai').unsettled).toBe(0);
    }
    open = openCircuits();
    await start();
    await vi.waitFor(async () => expect(await queue.getJobState(jobId)).toBe('completed'), patience);
    expect(decodeOutcome((await queue.getJob(jobId))?.returnvalue)).toMatchObject({
      kind: 'ok',
      text: 'Hello',
    });
  });

  it.each([
    ['a reply before the store has it', provider, 1],
    // Where the lock was lost meanwhile, the store refuses it, and another worker may succeed.
    ['a failure once the store has taken it', { ...provider, run: async () => refuse() }, 0],
  ])('publishes %s', async (_, ownProvider, publishedBefore) => {
    const worker = await start(ownProvider);
    const ended = Promise.withResolvers<number>();
    worker.bullWorker.on('completed', () => ended.resolve(relay.published.length));
    await add();
    expect(await ended.promise).toBe(publishedBefore);
    await relay.publishedAtLeast(1);
    await worker.close({ graceMs: 60_000 });
    expect(relay.published.map(({ topic }) => topic)).toEqual(['reply.node']);
  });

  it('leaves a job of a newer release to a worker that can read it, however often, and goes on with its own', async () => {
    const worker = await start();
    const taken: (string | undefined)[] = [];
    worker.bullWorker.on('active', ({ id }) => taken.push(id));
    const newer = randomUUID();
    await queue.add('chat', { v: 2, turns: 'in a shape of its own' }, { jobId: newer });
    const own = await add();
    await vi.waitFor(async () => expect(await queue.getJobState(own)).toBe('completed'), patience);
    const timesTaken = () => taken.filter((id) => id === newer).length;
    // More often than a job may be started that takes its workers down.
    await vi.waitFor(() => expect(timesTaken()).toBeGreaterThan(2), patience);
    await vi.waitFor(() => expect(jobs.loadOf('openai').unsettled).toBe(0), patience);
    await worker.close({ graceMs: 60_000 });
    expect(await queue.getJobState(newer)).toBe('delayed');
    expect(logged.text()).not.toContain('not requeued');

    const ofNewer = shared.store.createWorker(queueName('openai'), async ({ data }) => data.turns, {});
    closing.push(() => ofNewer.close());
    await vi.waitFor(async () => expect(await queue.getJobState(newer)).toBe('completed'), patience);
    expect((await queue.getJob(newer))?.returnvalue).toBe('in a shape of its own');
  });

  it('logs why a job has no reply in one line, without a stack', async () => {
    const refusing: Provider = {
      ...provider,
      run: async () => {
        throw classifyError(new TypeError('secret'), { status: 400, words: ['context_length_exceeded'] });
      },
    };
    await start(refusing);
    const jobId = await add();
    await vi.waitFor(async () => expect(await queue.getJobState(jobId)).toBe('completed'), patience);
    const line = logged.lines.find(({ msg, jobId: id }) => msg === 'job failed' && id === jobId);
    expect(line).toEqual({
      level: 40,
      time: expect.anything(),
      pid: expect.anything(),
      hostname: expect.anything(),
      msg: 'job failed',
      ...{ jobId, user: 'me' },
      code: 'context_length_exceeded',
      error: 'TypeError',
      status: 400,
      word: 'context_length_exceeded',
    });
  });

  it('counts a job until its outcome is stored, and publishes the outcome once', async () => {
    const worker = await start();
    const during: boolean[] = [];
    worker.bullWorker.on('active', () => during.push(jobs.loadOf('openai').unsettled === 0));
    const ended = once(worker.bullWorker, 'completed');
    const jobId = await add();
    await ended;
    expect(during).toEqual([true]);
    await vi.waitFor(() => expect(jobs.ofChat(jobId)).toEqual([]), patience);
    await worker.close({ graceMs: 60_000 });
    expect(await queue.getJobState(jobId)).toBe('completed');
    const outcome = (await queue.getJob(jobId))?.returnvalue;
    expect(relay.published).toEqual([
      { topic: 'reply.node', message: { v: 1, settled: [{ jobId, outcome }] } },
    ]);
  });

  it('takes no job for lost whose lock is renewed just after its end', async () => {
    const before = logged.lines.length;
    const lost = () => logged.lines.slice(before).filter(({ msg }) => msg === 'jobs lost to another worker');
    const reached = Promise.withResolvers<void>();
    const hanging: Provider = {
      ...provider,
      run: ({ signal }) => {
        reached.resolve();
        return new Promise((_, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason));
        });
      },
    };
    const worker = await start(hanging, { lockMs: 1000 });
    const running = await add();
    await reached.promise;
    const failed = [['ended'], ['ended', running]];
    worker.bullWorker.extendJobLocks = async () => {
      if (failed.length === 1) expect(lost()).toEqual([]);
      return failed.shift() ?? [];
    };
    await vi.waitFor(() => expect(lost()).toMatchObject([{ jobIds: [running] }]), patience);
  });

  it('keeps the locks of its jobs in a turn of the event loop that outlasts them', async () => {
    const before = logged.lines.length;
    const jobs = 30;
    const lockMs = 1000;
    let calls = 0;
    const together = Promise.withResolvers<void>();
    const busy: Provider = {
      ...provider,
      // All replies come in one turn, and each takes a while to be read.
      run: async () => {
        calls += 1;
        if (calls === 1) return { text: 'Hello', reason: 'stop', model: 'm' };
        if (calls === jobs) together.resolve();
        await together.promise;
        await new Promise<void>((resolve) => setImmediate(resolve));
        for (const until = performance.now() + (3 * lockMs) / jobs; performance.now() < until; );
        return { text: 'Hello', reason: 'stop', model: 'm' };
      },
    };
    // Not through the wire, which turns in this process.
    await start(busy, { concurrency: jobs, lockMs, store: shared.another });
    const isCompleted = (ids: string[]) =>
      vi.waitFor(async () => {
        const states = await Promise.all(ids.map((id) => queue.getJobState(id)));
        expect(new Set(states)).toEqual(new Set(['completed']));
      }, patience);
    // After it the store has learnt all scripts.
    await isCompleted([await add()]);
    await isCompleted(await Promise.all(Array.from({ length: jobs - 1 }, add)));
    expect(calls).toBe(jobs);
    const lost = logged.lines.slice(before).filter(({ msg }) => msg === 'jobs lost to another worker');
    expect(lost).toEqual([]);
  });

  it('logs a job that fails unexpectedly, and publishes that where somebody waits for it', async () => {
    const before = logged.lines.length;
    const canary = new TypeError('canary');
    const broken: Provider = {
      ...provider,
      run: () => {
        throw canary;
      },
    };
    const worker = await start(broken);
    const jobId = await add();
    const { message } = (await relay.publishedAtLeast(1))[0] ?? {};
    expect(message).toMatchObject({ settled: [{ jobId, outcome: expect.stringContaining('"internal"') }] });
    expect(JSON.stringify(message)).not.toContain('canary');
    const failed = () =>
      logged.lines.slice(before).filter(({ msg, level }) => msg === 'job broke' && level === 50);
    expect(failed().map((line) => line.jobId)).toEqual([jobId]);

    const unreadable = new Promise((resolve) => worker.bullWorker.on('failed', resolve));
    await queue.add('chat', null);
    await unreadable;
    // BullMQ has no other facts about a job that stalled too often and was removed.
    worker.bullWorker.emit('failed', undefined, canary, 'active');
    expect(failed()).toHaveLength(3);
    await vi.waitFor(() => expect(jobs.loadOf('openai').unsettled).toBe(0), patience);
    expect(relay.published).toHaveLength(1);
  });
});
