import type { Job } from 'bullmq';
import type { Config } from '../../shared/config/config.js';
import type { PoolSettings } from '../../shared/config/pool-settings.js';
import type { ProviderId } from '../../shared/contract.js';
import { Failure } from '../../shared/failures.js';
import type { WorkerInstruments } from '../../shared/metrics/instruments.js';
import {
  type ChatJobPayload,
  cancelSchema,
  queueName,
  type RateLimitMessage,
  rateLimitSchema,
  topics,
} from '../../shared/protocol/messages.js';
import { writtenVersion } from '../../shared/protocol/version.js';
import type { QueueStore } from '../../shared/queue/queue-store.js';
import type { Relay } from '../../shared/queue/relay.js';
import type { Log } from '../../shared/runtime/log.js';
import { withTimeout } from '../../shared/runtime/with-timeout.js';
import { type ActiveJobs, createActiveJobs } from '../job/active-jobs.js';
import { type Breaker, type BreakerState, createBreaker } from '../job/breaker.js';
import { AccountSamples } from '../job/call-samples.js';
import { Circuits } from '../job/circuits.js';
import { createLoadTracker } from '../job/load-tracker.js';
import { createPoolMetrics } from '../job/pool-metrics.js';
import { createReplyPublisher, type ReplyPublisher } from '../job/reply-publisher.js';
import { createRetryBudget } from '../job/retry-budget.js';
import { Slots } from '../job/slots.js';
import { createStoredResults } from '../job/stored-results.js';
import type { Provider } from '../providers/provider.js';
import { Backlog } from './backlog.js';
import { type ClockGuard, createClockGuard } from './clock-guard.js';
import { type Heartbeat, startHeartbeat } from './heartbeat.js';
import { describePool } from './pool-status.js';
import { createPoolThrottle } from './pool-throttle.js';
import { createPoolWorker } from './pool-worker.js';

/** The workers of one provider in this process: takes its jobs off the queue, and tells the API how it fares. */
export interface Pool {
  readonly id: ProviderId;
  /** Takes no more jobs and waits for the running ones; those that outlast `graceMs` are cut short and fail. */
  stop(options: { graceMs: number }): Promise<void>;
}

interface PoolDeps {
  provider: Provider;
  settings: PoolSettings;
  config: Pick<Config, 'WORKER_LOCK_MS' | 'WORKER_STALLED_CHECK_MS' | 'BREAKER_RESET_MS'>;
  store: QueueStore;
  relay: Relay;
  /** Name of this worker process, unique among all of them. */
  workerName: string;
  instruments: WorkerInstruments;
  log: Log;
}

/** Starts the pool and tells the API of it; the store must be ready. */
export async function startPool(deps: PoolDeps): Promise<Pool> {
  const { provider, settings, config, store, relay } = deps;
  const log = deps.log.child({ provider: provider.id });
  const jobs = createActiveJobs();
  // Before the first job is taken: what is told while nobody listens is lost.
  await relay.subscribe(topics.cancel(provider.id), cancelSchema, ({ jobIds }) => jobs.cancel(jobIds));
  const storedResults = createStoredResults({ records: store.records, log, now: store.now });
  const replies = createReplyPublisher({ relay, storedResults, log });
  const load = createLoadTracker({ onEnd: () => account.state === 'half-open' && throttle.adjust() });
  const metrics = createPoolMetrics(deps.instruments, provider.id);
  const slots = new Slots({ size: settings.concurrency, onChange: oncePerTurn(() => throttle.adjust()) });
  const recordBreaker = (breaker: BreakerState, model?: string) => {
    log.warn({ breaker, model }, 'breaker changed');
    metrics.recordBreaker(breaker);
  };
  const queue = store.createQueue(queueName(provider.id));
  const backlog = new Backlog({ queue });
  const change = () => {
    throttle.adjust();
    backlog.forget();
    heartbeat.publish();
  };
  const times = { timeoutMs: settings.timeoutMs, resetMs: config.BREAKER_RESET_MS };
  const account = createBreaker({
    ...times,
    samples: new AccountSamples(),
    onChange: (state) => {
      recordBreaker(state);
      change();
    },
  });
  const circuits = new Circuits({
    ...times,
    now: store.now,
    hasRoom: () => slots.away < maxAway,
    onChange: (model, state) => {
      if (state !== undefined) recordBreaker(state, model);
      heartbeat.publish();
    },
    publishLimit: (model, holdMs) => publishLimit(deps, model, holdMs),
  });
  const budget = createRetryBudget();
  const shared = { provider, settings, account, circuits, budget, metrics, now: store.now };
  metrics.show({ settings, load, ...overall(account, circuits) });
  const unsettled = new Set<string>();
  const worker = createPoolWorker({ ...deps, shared, slots, load, jobs, unsettled, storedResults, log });
  worker.on('completed', (job: Job<ChatJobPayload>, outcome: string) => replies.settled(job, outcome));
  worker.on('failed', (job, error) => {
    metrics.recordBroken();
    replies.broke(job, error);
  });
  worker.on('active', () => backlog.forget());
  worker.on('drained', () => backlog.recordEmpty());
  const clock = createClockGuard({ check: () => store.check(), onChange: change, log });
  const throttle = createPoolThrottle({
    worker,
    breaker: account,
    load,
    slots,
    clock,
    concurrency: settings.concurrency,
  });

  const heartbeat = startHeartbeat({
    relay,
    describe: () => describePool({ ...deps, account, circuits, slots, clock, throttle, load, backlog }),
    log,
  });
  await Promise.all([subscribeLimits(deps, circuits), heartbeat.started]);

  const parts: PoolParts = {
    provider,
    circuits,
    clock,
    worker,
    unsettled,
    jobs,
    heartbeat,
    replies,
    queue,
    account,
    log,
  };
  return { id: provider.id, stop: ({ graceMs }) => stopPool(parts, graceMs) };
}

interface PoolParts extends Pick<PoolDeps, 'provider' | 'log'> {
  circuits: Circuits;
  clock: ClockGuard;
  worker: ReturnType<typeof createPoolWorker>;
  unsettled: ReadonlySet<string>;
  jobs: ActiveJobs;
  heartbeat: Heartbeat;
  replies: ReplyPublisher;
  queue: ReturnType<QueueStore['createQueue']>;
  account: Breaker;
}

/**
 * PoolThrottle first; jobs that wait for their model go back to the queue. A worker waits for its store without end, so
 * without jobs it is not waited for: it may have taken one just now, which is why they are counted only after a moment.
 */
async function stopPool(parts: PoolParts, graceMs: number): Promise<void> {
  const { provider, circuits, clock, worker, unsettled, jobs, heartbeat, replies, queue, account, log } =
    parts;
  clock.stop();
  circuits.close();
  const closing = worker.close();
  const closed = withTimeout(closingMs, closing)
    .catch(() => withTimeout(unsettled.size > 0 ? graceMs : 0, closing))
    .catch(() => log.warn('stopped without the queue store'));
  const cutShort = setTimeout(() => jobs.abortAll(new Failure('provider_unavailable')), graceMs);
  await withTimeout(closingMs, heartbeat.stop()).catch(() => undefined);
  await closed;
  clearTimeout(cutShort);
  await withTimeout(closingMs, replies.flush()).catch(() => undefined);
  await withTimeout(closingMs, queue.close()).catch(() => undefined);
  circuits.dispose();
  account.close();
  provider.close();
}

/** How long the store may take to let go. */
const closingMs = 1000;

/** Jobs that may wait here without a slot; each has its conversation in memory. */
const maxAway = 500;

/** Changes of one turn of the event loop are one. */
function oncePerTurn(work: () => void): () => void {
  let isDue = false;
  return () => {
    if (isDue) return;
    isDue = true;
    setImmediate(() => {
      isDue = false;
      work();
    });
  };
}

/** For the metrics, whose labels cannot name models. */
const overall = (account: Breaker, circuits: Circuits) => ({
  cooldown: {
    get leftMs() {
      return circuits.maxCooldownMs;
    },
  },
  breaker: {
    get state() {
      return account.state === 'closed' ? circuits.worstState : account.state;
    },
  },
});

/** One account serves all workers of a provider: who is told to wait for a model tells the others. */
function publishLimit({ relay, provider, workerName, log }: PoolDeps, model: string, holdMs: number): void {
  log.warn({ provider: provider.id, model, holdMs }, 'provider rate limited');
  const message: RateLimitMessage = {
    v: writtenVersion,
    provider: provider.id,
    worker: workerName,
    holdMs,
    model,
  };
  relay.publish(topics.limit(provider.id), message).catch((err) => log.debug({ err }, 'limit not told'));
}

/** The release before does not say of which model: its own first call tells this pool. */
async function subscribeLimits({ relay, provider, workerName }: PoolDeps, circuits: Circuits): Promise<void> {
  await relay.subscribe(topics.limit(provider.id), rateLimitSchema, ({ worker, holdMs, model }) => {
    if (worker !== workerName && model !== undefined) circuits.of(model).cooldown.extend(holdMs);
  });
}
