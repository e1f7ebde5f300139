import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { parseConfig } from '../../../shared/config/config.js';
import { encodeChatJob, queueName } from '../../../shared/protocol/messages.js';
import { decodeOutcome } from '../../../shared/protocol/outcome.js';
import { createActiveJobs } from '../../../workers/job/active-jobs.js';
import { createLoadTracker } from '../../../workers/job/load-tracker.js';
import { createRetryBudget } from '../../../workers/job/retry-budget.js';
import { Slots } from '../../../workers/job/slots.js';
import { createStoredResults } from '../../../workers/job/stored-results.js';
import { createPoolWorker } from '../../../workers/pool/pool-worker.js';
import { toFailure } from '../../../workers/providers/error-classification.js';
import type { Provider } from '../../../workers/providers/provider.js';
import { openCircuits } from '../../support/circuits.js';
import { poolMetrics } from '../../support/metrics.js';
import { patience } from '../../support/patience.js';
import { createRecordingLog } from '../../support/recording-log.js';
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

describe.each(stores)('createPoolWorker on $name', (choice) => {
  if (choice.servedBy === undefined) return it.skip(`(${choice.missing})`);

  let shared: SharedStore;
  let queue: ReturnType<SharedStore['store']['createQueue']>;
  let open: ReturnType<typeof openCircuits>;
  const closing: (() => Promise<void>)[] = [];

  beforeAll(async () => {
    shared = await startSharedStore(choice, log);
    queue = shared.another.createQueue(queueName('openai'));
  });
  afterAll(async () => {
    await queue?.close();
    await shared?.stop();
  });
  beforeEach(() => {
    open = openCircuits();
  });
  afterEach(async () => {
    open.close();
    for (const close of closing.splice(0)) await close();
  });

  const start = (unsettled: Set<string>, ownProvider = provider) => {
    const worker = createPoolWorker({
      shared: {
        provider: ownProvider,
        settings: { concurrency: 2, timeoutMs: 5000, model: 'm', maxOutputTokens: 1 },
        ...open,
        budget: createRetryBudget(),
        metrics: poolMetrics,
      },
      config: parseConfig({ DATABASE_URL: 'postgres://127.0.0.1/none' }, 'config'),
      store: shared.store,
      workerName: 'test',
      slots: new Slots({ size: 2, onChange: () => {} }),
      load: createLoadTracker(),
      jobs: createActiveJobs(),
      unsettled,
      storedResults: createStoredResults({ records: shared.store.records, log }),
      log,
    });
    closing.push(() => worker.close());
    return worker;
  };
  const add = async () => {
    const jobId = randomUUID();
    const turns = [{ role: 'user', content: 'Hello' } as const];
    const deadline = Date.now() + 60_000;
    await queue.add('chat', encodeChatJob({ v: 1, provider: 'openai', turns, deadline, replyTo: 'node' }), {
      jobId,
    });
    return jobId;
  };

  it('gives a job that it holds back to the next worker when it is told to stop, however often', async () => {
    const jobId = await add();
    // More often than a job may be started that takes its workers down.
    for (let n = 0; n < 3; n += 1) {
      open = openCircuits();
      open.circuits.of('m').cooldown.extend(50_000);
      const unsettled = new Set<string>();
      const worker = start(unsettled);
      await vi.waitFor(() => expect(unsettled).toEqual(new Set([jobId])), patience);
      open.circuits.close();
      const startedAt = performance.now();
      await worker.close();
      // And not when the cooldown is over.
      expect(performance.now() - startedAt).toBeLessThan(40_000);
      expect(await queue.getJobState(jobId)).toBe('waiting');
      expect(unsettled.size).toBe(0);
    }
    open = openCircuits();
    start(new Set());
    await vi.waitFor(async () => expect(await queue.getJobState(jobId)).toBe('completed'), patience);
    expect(decodeOutcome((await queue.getJob(jobId))?.returnvalue)).toMatchObject({
      kind: 'ok',
      text: 'Hello',
    });
  });

  it('leaves a job of a newer release to a worker that can read it, however often, and goes on with its own', async () => {
    const unsettled = new Set<string>();
    const worker = start(unsettled);
    const taken: (string | undefined)[] = [];
    worker.on('active', ({ id }) => taken.push(id));
    const newer = randomUUID();
    await queue.add('chat', { v: 2, turns: 'in a shape of its own' }, { jobId: newer });
    const own = await add();
    await vi.waitFor(async () => expect(await queue.getJobState(own)).toBe('completed'), patience);
    const timesTaken = () => taken.filter((id) => id === newer).length;
    // More often than a job may be started that takes its workers down.
    await vi.waitFor(() => expect(timesTaken()).toBeGreaterThan(2), patience);
    await vi.waitFor(() => expect(unsettled.size).toBe(0), patience);
    await worker.close();
    expect(await queue.getJobState(newer)).toBe('delayed');
    expect(logged.text()).not.toContain('not handed back');

    const ofNewer = shared.store.createWorker(queueName('openai'), async ({ data }) => data.turns, {});
    closing.push(() => ofNewer.close());
    await vi.waitFor(async () => expect(await queue.getJobState(newer)).toBe('completed'), patience);
    expect((await queue.getJob(newer))?.returnvalue).toBe('in a shape of its own');
  });

  it('logs why a job has no reply in one line, without a stack', async () => {
    const refusing: Provider = {
      ...provider,
      run: async () => {
        throw toFailure(new TypeError('secret'), { status: 400, words: ['context_length_exceeded'] });
      },
    };
    start(new Set(), refusing);
    const jobId = await add();
    await vi.waitFor(async () => expect(await queue.getJobState(jobId)).toBe('completed'), patience);
    const line = logged.lines.find(({ msg, jobId: id }) => msg === 'job failed' && id === jobId);
    expect(line).toEqual({
      level: 40,
      time: expect.anything(),
      pid: expect.anything(),
      hostname: expect.anything(),
      msg: 'job failed',
      jobId,
      code: 'provider_rejected',
      error: 'TypeError',
      status: 400,
      word: 'context_length_exceeded',
    });
  });

  it('counts a job until its outcome is stored', async () => {
    const unsettled = new Set<string>();
    const worker = start(unsettled);
    const during: boolean[] = [];
    worker.on('active', () => during.push(unsettled.size === 0));
    const ended = new Promise((resolve) => worker.on('completed', resolve));
    const jobId = await add();
    await ended;
    expect(during).toEqual([true]);
    expect(unsettled.has(jobId)).toBe(false);
    const failed = new Promise((resolve) => worker.on('failed', resolve));
    await queue.add('chat', null);
    await failed;
    expect(unsettled.size).toBe(0);
  });
});
