import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { afterAll, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import { parseConfig } from '../../../shared/config/config.js';
import { Failure } from '../../../shared/failures.js';
import { openInstruments } from '../../../shared/metrics/instruments.js';
import { workerMetrics } from '../../../shared/metrics/metrics.js';
import {
  type ChatJob,
  encodeChatJob,
  type PoolHeartbeat,
  queueName,
} from '../../../shared/protocol/messages.js';
import { decodeOutcome } from '../../../shared/protocol/outcome.js';
import type { PoolOverrides } from '../../../shared/protocol/settings.js';
import { closeQueues, openQueues } from '../../../shared/queue/channels.js';
import type { QueueStore } from '../../../shared/queue/queue-store.js';
import { release } from '../../../shared/runtime/release.js';
import { DeltaPublisher } from '../../../workers/job/delta-publisher.js';
import { NextAttempts } from '../../../workers/job/next-attempt.js';
import { RunningJobs } from '../../../workers/job/running-jobs.js';
import { Heartbeat } from '../../../workers/pool/heartbeat.js';
import { LiveSettings } from '../../../workers/pool/live-settings.js';
import { Pool } from '../../../workers/pool/pool.js';
import type { Provider, ProviderRequest } from '../../../workers/providers/provider.js';
import { chatJobOf, poolSettings } from '../../support/chat-jobs.js';
import { patience } from '../../support/patience.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { createRecordingRelay, type RecordingRelay } from '../../support/recording-relay.js';
import { describeStores } from '../../support/shared-store.js';

const { log } = createRecordingLog();
const concurrency = 2;

describeStores('Pool on $kind', log, (shared) => {
  let queue: ReturnType<QueueStore['createQueue']>;
  let relay: RecordingRelay;
  /** Resolves when the pool has found the queue empty. */
  let drained: Promise<void>;
  /** How often the pool has counted the jobs that wait. */
  let counted: number;
  let settings: LiveSettings;
  let requests: ProviderRequest[];
  /** The provider waits for this before it answers. */
  let gate: PromiseWithResolvers<void>;

  beforeAll(() => {
    queue = shared.another.createQueue(queueName('openai'));
  });
  afterAll(() => queue?.close());

  beforeEach(async () => {
    relay = createRecordingRelay();
    counted = 0;
    requests = [];
    gate = Promise.withResolvers();
    settings = new LiveSettings(poolSettings({ concurrency, timeoutMs: 60_000, maxOutputTokens: 1 }));
    const provider: Provider = {
      id: 'openai',
      run: async (request) => {
        requests.push(request);
        await gate.promise;
        return { text: 'Hello', reason: 'stop', model: 'm' };
      },
      close: () => {},
    };
    const jobs = new RunningJobs();
    const queues = openQueues({ createQueue: createCountingQueue });
    const found = Promise.withResolvers<void>();
    drained = found.promise;
    const createWorker: QueueStore['createWorker'] = (...worker) =>
      shared.store.createWorker(...worker).once('drained', () => found.resolve());
    const pool = new Pool({
      ...{
        provider,
        settings,
        store: { ...shared.store, createWorker },
        queues,
        relay,
        jobs,
        workerName: 'test',
        log,
      },
      config: parseConfig({ DATABASE_URL: 'postgres://127.0.0.1/none' }, 'config'),
      deltas: new DeltaPublisher({ jobs, relay, windowMs: 1, log }),
      nextAttempts: new NextAttempts({ store: shared.store, queues, log }),
      heartbeat: new Heartbeat({ relay, worker: 'test', log, everyMs: 20 }),
      instruments: openInstruments(workerMetrics),
    });
    await pool.start();
    return async () => {
      gate.resolve();
      await pool.stop({ graceMs: 60_000 });
      await closeQueues(queues);
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
  const add = (model?: string, own: Partial<ChatJob> = {}) =>
    queue.add('chat', encodeChatJob(chatJobOf(model ? { model, ...own } : own)), { jobId: randomUUID() });
  const change = (overrides: PoolOverrides) => settings.apply({ version: settings.version + 1, overrides });
  const lastHeartbeat = () =>
    relay.published
      .flatMap(({ message }) => ('pools' in message ? (message.pools as PoolHeartbeat[]) : []))
      .at(-1);

  it('an empty queue -> the state is published without counting its jobs each time', async () => {
    await relay.publishedAtLeast(20);
    // Once in five seconds.
    expect(counted).toBeLessThan(relay.published.length / 2);
    expect(lastHeartbeat()).toMatchObject({ state: 'serving', waiting: 0 });
  });

  it('a state -> says which release and settings run, where, and how the calls of the last minute went', async () => {
    gate.resolve();
    await Promise.all([add(), add()]);
    const calls = { count: 2, errorRate: 0, rateLimitRate: 0, latencyMs: expect.anything() };
    const service = expect.objectContaining({ count: 2, waitingBefore: expect.any(Number) });
    const first = { release, host: hostname(), settingsVersion: 0, calls, service, simulated: false };
    await vi.waitFor(() => expect(lastHeartbeat()).toMatchObject(first), patience);
    change({});
    await vi.waitFor(() => expect(lastHeartbeat()).toMatchObject({ settingsVersion: 1 }), patience);
  });

  it('a concurrency that grows or shrinks -> as many jobs are taken at once, and what waits is published', async () => {
    await Promise.all([add(), add(), add(), add(), add()]);
    await vi.waitFor(() => expect(lastHeartbeat()).toMatchObject({ inFlight: 2, waiting: 3 }), patience);
    change({ concurrency: 5 });
    const full = { concurrency: 5, inFlight: 5, waiting: 0 };
    await vi.waitFor(() => expect(lastHeartbeat()).toMatchObject(full), patience);
    expect(requests).toHaveLength(5);

    change({ concurrency: 1 });
    await vi.waitFor(() => expect(lastHeartbeat()).toMatchObject({ concurrency: 1 }), patience);
    const first = gate;
    gate = Promise.withResolvers();
    await Promise.all([add(), add(), add()]);
    first.resolve();
    await vi.waitFor(() => expect(lastHeartbeat()).toMatchObject({ inFlight: 1, waiting: 2 }), patience);
    expect(requests).toHaveLength(6);
    gate.resolve();
    await vi.waitFor(() => expect(lastHeartbeat()).toMatchObject({ inFlight: 0, waiting: 0 }), patience);
  });

  it('a pool that operators pause -> takes nothing, not even what it waited for, and goes on afterwards', async () => {
    // It has found no job, and waits for one.
    await drained;
    await relay.publishedAtLeast(3);
    change({ intake: 'paused' });
    await Promise.all([add(), add()]);
    const paused = { state: 'paused', pausedBy: 'operator', inFlight: 0, waiting: 2 };
    await vi.waitFor(() => expect(lastHeartbeat()).toMatchObject(paused), patience);
    expect(requests).toEqual([]);
    change({ intake: 'draining' });
    gate.resolve();
    await vi.waitFor(() => expect(requests).toHaveLength(2), patience);
  });

  it('a breaker that is held open -> the pool takes nothing, and says why', async () => {
    change({ breaker: 'open' });
    const held = {
      state: 'paused',
      breakers: [{ model: null, state: 'open', nextProbeMs: 0, reason: 'operator' }],
    };
    await vi.waitFor(() => expect(lastHeartbeat()).toMatchObject(held), patience);
    change({});
    await vi.waitFor(() => expect(lastHeartbeat()).toMatchObject({ state: 'serving' }), patience);
    expect(lastHeartbeat()?.breakers).toBeUndefined();
  });

  it('a 429 -> the other workers of the provider learn which model it limits, for how long, and for whom', async () => {
    const job = chatJobOf({ model: 'm-1', user: 'M' });
    await queue.add('chat', encodeChatJob(job), { jobId: randomUUID() });
    await vi.waitFor(() => expect(requests).toHaveLength(1), patience);
    gate.reject(new Failure('provider_rate_limited', { retryAfterMs: 59_000 }));
    const limit = { v: 1, provider: 'openai', worker: 'test', model: 'm-1', holdMs: 59_000, user: 'M' };
    const message = { topic: 'limit.openai', message: limit };
    await vi.waitFor(() => expect(relay.published).toContainEqual(message), patience);
  });

  it('schemas that take long to compile -> one user has one call beside two slots, and the next wait', async () => {
    change({ timeoutMs: 100 });
    const askedFor = (title: string) => ({
      parameters: { format: { type: 'json_schema' as const, name: 'a', schema: { title } } },
    });
    await Promise.all([...'abcde'].map((title) => add('m', askedFor(title))));
    // The provider does not end its calls.
    const timedOut = () => requests.filter(({ signal }) => signal.aborted);
    await vi.waitFor(() => expect(timedOut()).toHaveLength(2), patience);
    await vi.waitFor(() => expect(lastHeartbeat()).toMatchObject({ inFlight: 2, waiting: 2 }), patience);
    expect(requests).toHaveLength(3);
    gate.resolve();
    await vi.waitFor(() => expect(lastHeartbeat()).toMatchObject({ inFlight: 0, waiting: 0 }), patience);
  });

  it('models that are changed -> a job goes by those of the moment at which it begins', async () => {
    gate.resolve();
    const run = async (model?: string) => {
      const { id = '' } = await add(model);
      const jobOf = () => queue.getJob(id);
      await vi.waitFor(async () => expect((await jobOf())?.finishedOn).toBeDefined(), patience);
      return decodeOutcome((await jobOf())?.returnvalue);
    };
    change({ models: ['n-*'] });
    expect(await run('n-1')).toMatchObject({ kind: 'ok' });
    change({ model: 'other', models: ['o-*'] });
    expect(await run('n-1')).toMatchObject({ kind: 'failed', code: 'invalid_request' });
    expect(await run()).toMatchObject({ kind: 'ok' });
    expect(requests).toMatchObject([
      { model: 'n-1', maxOutputTokens: 1 },
      { model: 'other', maxOutputTokens: 1 },
    ]);
    expect(lastHeartbeat()).toMatchObject({ defaultModel: 'other', models: ['o-*'] });
  });
});
