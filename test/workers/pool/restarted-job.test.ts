import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseConfig } from '../../../shared/config/config.js';
import { encodeChatJob } from '../../../shared/protocol/messages.js';
import { decodeOutcome } from '../../../shared/protocol/outcome.js';
import { closeQueues, openQueues, type Queues } from '../../../shared/queue/channels.js';
import type { QueueStore } from '../../../shared/queue/queue-store.js';
import { DeltaPublisher } from '../../../workers/job/delta-publisher.js';
import { NextAttempts } from '../../../workers/job/next-attempt.js';
import { RunningJobs } from '../../../workers/job/running-jobs.js';
import { Slots } from '../../../workers/job/slots.js';
import { PoolWorker } from '../../../workers/pool/pool-worker.js';
import type { RequeuableJob } from '../../../workers/pool/requeue.js';
import { openCircuits } from '../../support/circuits.js';
import { poolMetrics } from '../../support/metrics.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { createRecordingRelay } from '../../support/recording-relay.js';
import { takeJob } from '../../support/running-jobs.js';
import { type SharedStore, startSharedStore } from '../../support/shared-store.js';
import { findStores } from '../../support/stores.js';

const stores = await findStores();
const { log } = createRecordingLog();
const settings = {
  ...{ concurrency: 2, timeoutMs: 5000, firstTokenTimeoutMs: 40_000, idleTimeoutMs: 20_000 },
  ...{ model: 'm', maxOutputTokens: 1, breakerResetMs: 60_000 },
};

describe.each(stores)('a job that is run again in $name', (choice) => {
  if (choice.servedBy === undefined) return it.skip(`(${choice.missing})`);

  let shared: SharedStore;
  let nextAttempts: NextAttempts;
  let queues: Queues;
  beforeAll(async () => {
    shared = await startSharedStore(choice, log);
    queues = openQueues(shared.store);
    nextAttempts = new NextAttempts({ store: shared.store, queues, log });
  });
  afterAll(async () => {
    if (queues) await closeQueues(queues);
    await shared?.stop();
  });

  it('leaves the stream alone of the attempt that its dead worker has begun', async () => {
    const relay = createRecordingRelay();
    const jobs = new RunningJobs();
    const deltas = new DeltaPublisher({ jobs, relay, windowMs: 1, log });
    let process: ((job: RequeuableJob) => Promise<string>) | undefined;
    const createWorker: QueueStore['createWorker'] = (name, processor, options) => {
      process = processor as unknown as typeof process;
      return shared.store.createWorker(name, processor, options);
    };
    const open = openCircuits();
    const worker = new PoolWorker({
      provider: { id: 'openai', run: () => expect.unreachable(), close: () => {} },
      settings: { current: settings },
      config: parseConfig({ DATABASE_URL: 'postgres://127.0.0.1/none' }, 'config'),
      store: { ...shared.store, createWorker },
      ...{
        relay,
        deltas,
        nextAttempts,
        jobs,
        workerName: 'test',
        ...open,
        metrics: poolMetrics,
        log,
      },
      slots: new Slots({ size: () => 2, onChange: () => {} }),
      times: { meanMs: 0 },
      listeners: [],
      backlog: { forget: () => {}, recordEmpty: () => {} },
    });
    const id = randomUUID();
    const chatJob = {
      ...{ v: 1 as const, provider: 'openai' as const, replyTo: 'node', user: 'me', stream: true },
      turns: [{ role: 'user' as const, content: 'Hello' }],
      deadline: shared.store.now() + 60_000,
      fallback: [{ provider: 'anthropic' as const }],
    };
    await nextAttempts.begin(takeJob({ id }), chatJob, { provider: 'openai', code: 'provider_error' });
    const next = takeJob({ id: `${id}-2`, data: { chatId: id }, provider: 'anthropic' });
    jobs.open(next);
    using running = deltas.open(next, 'node', { provider: 'anthropic' });
    running.append('Hel');
    const queued = {
      ...{ id, data: encodeChatJob(chatJob), timestamp: shared.store.now(), attemptsStarted: 2 },
      moveToWait: async () => {},
      moveToDelayed: async () => {},
    };
    jobs.open(takeJob(queued));
    const outcome = await process?.(jobs.ofChat(id)[1]?.queued as RequeuableJob);
    expect(decodeOutcome(outcome)).toMatchObject({ next: { provider: 'anthropic', attempt: 2 } });
    deltas.onResend({ v: 1, jobId: id, api: 'node', from: 0 });
    running.append('lo');
    await relay.publishedAtLeast(2);
    const calls = relay.published.flatMap(({ message }) => (message as { deltas: object[] }).deltas);
    for (const delta of calls) expect(delta).toMatchObject({ callId: running.callId });
    await worker.close({ graceMs: 0 });
    open.close();
  });
});
