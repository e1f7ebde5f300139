import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { parseConfig } from '../../../shared/config/config.js';
import { openInstruments } from '../../../shared/metrics/instruments.js';
import { workerMetrics } from '../../../shared/metrics/metrics.js';
import { encodeChatJob, type PoolHeartbeat, queueName } from '../../../shared/protocol/messages.js';
import type { QueueStore } from '../../../shared/queue/queue-store.js';
import { startPool } from '../../../workers/pool/pool.js';
import type { Provider } from '../../../workers/providers/provider.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { createRecordingRelay, type RecordingRelay } from '../../support/recording-relay.js';
import { type SharedStore, startSharedStore } from '../../support/shared-store.js';
import { findStores } from '../../support/stores.js';

const stores = await findStores();
const { log } = createRecordingLog();
const concurrency = 2;

describe.each(stores)('startPool on $name', (choice) => {
  if (choice.servedBy === undefined) return it.skip(`(${choice.missing})`);

  let shared: SharedStore;
  let queue: ReturnType<QueueStore['createQueue']>;
  let relay: RecordingRelay;
  /** How often the pool has counted the jobs that wait. */
  let counted: number;
  let answer: () => void;

  beforeAll(async () => {
    shared = await startSharedStore(choice, log);
    queue = shared.another.createQueue(queueName('openai'));
  });
  afterAll(async () => {
    await queue?.close();
    await shared?.stop();
  });

  beforeEach(async () => {
    relay = createRecordingRelay();
    counted = 0;
    const answered = Promise.withResolvers<void>();
    answer = answered.resolve;
    const provider: Provider = {
      id: 'openai',
      run: async () => {
        await answered.promise;
        return { text: 'Hello', reason: 'stop', model: 'm' };
      },
      close: () => {},
    };
    const pool = await startPool({
      provider,
      settings: { concurrency, timeoutMs: 60_000, model: 'm', maxOutputTokens: 1 },
      config: parseConfig({ DATABASE_URL: 'postgres://127.0.0.1/none' }, 'config'),
      store: { ...shared.store, createQueue: createCountingQueue },
      relay,
      workerName: 'test',
      instruments: openInstruments(workerMetrics),
      log,
    });
    return async () => {
      answer();
      await pool.stop({ graceMs: 1000 });
    };
  });

  const createCountingQueue: QueueStore['createQueue'] = (name) => {
    const counting = shared.store.createQueue(name);
    const count = counting.getCountsPerPriority.bind(counting);
    counting.getCountsPerPriority = (priorities) => {
      counted += 1;
      return count(priorities);
    };
    return counting;
  };
  const add = () => {
    const turns = [{ role: 'user', content: 'Hello' } as const];
    const job = { v: 1, provider: 'openai', turns, deadline: Date.now() + 60_000, replyTo: 'node' } as const;
    return queue.add('chat', encodeChatJob(job), { jobId: randomUUID() });
  };
  const lastBeat = () => relay.told.at(-1)?.message as PoolHeartbeat;

  it('tells how it fares without counting the jobs of an empty queue each time', async () => {
    const startedAt = performance.now();
    await relay.toldAtLeast(4);
    const fiveSeconds = Math.ceil((performance.now() - startedAt) / 5000);
    expect(counted).toBeLessThanOrEqual(1 + fiveSeconds);
    expect(lastBeat()).toMatchObject({ state: 'serving', waiting: 0 });
  });

  it('tells of the jobs that wait as soon as it has no room for them, and until they have been taken', async () => {
    await relay.toldAtLeast(2);
    await Promise.all([add(), add(), add(), add(), add()]);
    const full = { inFlight: concurrency, waiting: 5 - concurrency };
    await vi.waitFor(() => expect(lastBeat()).toMatchObject(full), { timeout: 20_000 });
    answer();
    await vi.waitFor(() => expect(lastBeat()).toMatchObject({ inFlight: 0, waiting: 0 }), {
      timeout: 20_000,
    });
  });
});
