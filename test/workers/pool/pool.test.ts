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
import { release } from '../../../shared/runtime/program.js';
import { DeltaPublisher } from '../../../workers/job/delta-publisher.js';
import { NextAttempts } from '../../../workers/job/next-attempt.js';
import { RunningJobs } from '../../../workers/job/running-jobs.js';
import { Heartbeat } from '../../../workers/pool/heartbeat.js';
import { LiveSettings } from '../../../workers/pool/live-settings.js';
import { Pool } from '../../../workers/pool/pool.js';
import type { Provider, ProviderRequest } from '../../../workers/providers/provider.js';
import { chatJobOf, poolSettings } from '../../support/chat-jobs.js';
import { noLedger } from '../../support/entries.js';
import { patience } from '../../support/patience.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { createRecordingRelay, type RecordingRelay } from '../../support/recording-relay.js';
import { describeStores } from '../../support/shared-store.js';

const { log } = createRecordingLog();

describeStores('Pool on $kind', log, (shared) => {
  let queue: ReturnType<QueueStore['createQueue']>;
  let relay: RecordingRelay;
  /** How often the pool has counted the jobs that wait. */
  let counted: number;
  let settings: LiveSettings;
  let requests: ProviderRequest[];
  /** How the provider's calls end; open for a test that sets another. */
  let gate: PromiseWithResolvers<void>;

  beforeAll(() => {
    queue = shared.another.createQueue(queueName('openai'));
  });
  afterAll(() => queue?.close());

  beforeEach(async () => {
    relay = createRecordingRelay();
    [counted, requests] = [0, []];
    gate = Promise.withResolvers();
    gate.resolve();
    settings = new LiveSettings(poolSettings({ concurrency: 2, timeoutMs: 60_000, maxOutputTokens: ['1'] }));
    const provider: Provider = {
      id: 'openai',
      run: async (request) => {
        requests.push(request);
        await gate.promise;
        return { text: 'Hello', reason: 'stop', model: 'm' };
      },
      close: () => {},
    };
    const { store } = shared;
    const jobs = new RunningJobs();
    const queues = openQueues({ createQueue: createCountingQueue });
    const pool = new Pool({
      ...{ provider, settings, store, queues, relay, jobs, workerName: 'test', ledger: noLedger, log },
      readTexts: async () => expect.unreachable(),
      config: parseConfig({ DATABASE_URL: 'postgres://127.0.0.1/none' }, 'config'),
      deltas: new DeltaPublisher({ jobs, relay, windowMs: 1, log }),
      nextAttempts: new NextAttempts({ store, queues, log }),
      heartbeat: new Heartbeat({ relay, worker: 'test', log, everyMs: 20 }),
      instruments: openInstruments(workerMetrics),
    });
    await pool.start();
    return async () => {
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
  const heartbeatSays = (facts: object) =>
    vi.waitFor(() => expect(lastHeartbeat()).toMatchObject(facts), patience);

  it('an empty queue -> the state is published without counting its jobs each time', async () => {
    await relay.publishedAtLeast(20);
    // Once in five seconds.
    expect(counted).toBeLessThan(relay.published.length / 2);
    expect(lastHeartbeat()).toMatchObject({ state: 'serving', waiting: 0 });
  });

  it('a state -> says which release and settings run, where, and how the calls of the last minute went', async () => {
    await Promise.all([add(), add()]);
    const calls = { count: 2, errorRate: 0, rateLimitRate: 0, latencyMs: expect.anything() };
    const service = expect.objectContaining({ count: 2, waitingBefore: expect.any(Number) });
    await heartbeatSays({ release, host: hostname(), settingsVersion: 0, calls, service, simulated: false });
    change({});
    await heartbeatSays({ settingsVersion: 1 });
  });

  it('a breaker that is held open -> the pool takes nothing, and says why', async () => {
    change({ breaker: 'open' });
    const held = { model: null, state: 'open', nextProbeMs: 0, reason: 'operator' };
    await heartbeatSays({ state: 'paused', breakers: [held] });
    change({});
    await heartbeatSays({ state: 'serving' });
    expect(lastHeartbeat()?.breakers).toBeUndefined();
  });

  it('a 429 -> the other workers of the provider learn which model it limits, for how long, and for whom', async () => {
    gate = Promise.withResolvers();
    await add('m-1', { user: 'M', deadline: Date.now() + 20_000 });
    await vi.waitFor(() => expect(requests).toHaveLength(1), patience);
    gate.reject(new Failure('provider_rate_limited', { retryAfterMs: 59_000 }));
    const limit = { v: 1, provider: 'openai', worker: 'test', model: 'm-1', holdMs: 59_000, user: 'M' };
    const message = { topic: 'limit.openai', message: limit };
    await vi.waitFor(() => expect(relay.published).toContainEqual(message), patience);
  });

  it('models that are changed -> a job goes by those of the moment at which it begins', async () => {
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
    await heartbeatSays({ defaultModel: 'other', models: ['o-*'] });
  });
});
