import type { Job, Queue, Worker } from 'bullmq';
import type { Config } from '../shared/config.js';
import type { ProviderId } from '../shared/contract.js';
import { Failure } from '../shared/failures.js';
import type { Log } from '../shared/log.js';
import {
  type ChatJobPayload,
  chatJobSchema,
  type PoolBeat,
  queueName,
  recordKeptMs,
} from '../shared/messages.js';
import { encodeOutcome, type Outcome } from '../shared/outcome.js';
import type { PoolSettings } from '../shared/pool-settings.js';
import type { QueueStore } from '../shared/queue.js';
import type { Telegraph } from '../shared/relay.js';
import { within } from '../shared/within.js';
import { type Breaker, type BreakerState, createBreaker } from './breaker.js';
import { type ChatJobDeps, runChatJob } from './chat-job.js';
import { startHeartbeat } from './heartbeat.js';
import { createLoad, type Load } from './load.js';
import type { Provider } from './provider.js';
import { createReplier } from './replier.js';
import { createRetryBudget } from './retry-budget.js';

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
  telegraph: Telegraph;
  /** Name of this worker process, unique among all of them. */
  workerName: string;
  log: Log;
}

/** Starts the pool and tells the API of it; the store must be ready. */
export async function startPool(deps: PoolDeps): Promise<Pool> {
  const { provider, settings, config, store, telegraph } = deps;
  const log = deps.log.child({ provider: provider.id });
  const shutdown = new AbortController();
  const replier = createReplier({ telegraph, log });
  const load = createLoad();
  const breaker = createBreaker({
    timeoutMs: settings.timeoutMs,
    resetMs: config.BREAKER_RESET_MS,
    onChange: (state) => {
      log.warn({ breaker: state }, 'breaker changed');
      applyBreaker(worker, state, settings.concurrency);
      heartbeat.beat();
    },
  });
  const worker = createWorker({ ...deps, log }, load, {
    provider,
    settings,
    breaker,
    budget: createRetryBudget(),
    shutdown: shutdown.signal,
  });
  worker.on('completed', (job: Job<ChatJobPayload>, outcome: string) => replier.settled(job, outcome));
  worker.on('failed', (job, error) => replier.broke(job, error));

  const queue = store.createQueue(queueName(provider.id));
  const cleaning = removeOldRecords(queue, log);
  const heartbeat = startHeartbeat({
    telegraph,
    describe: () => describePool(deps, { breaker, load, queue }),
    log,
  });
  await heartbeat.started;

  return {
    id: provider.id,
    stop: async ({ graceMs }) => {
      clearInterval(cleaning);
      // Intake first. A worker waits for its store without end, so without jobs it is not waited for: it may have
      // taken one just now, which is why they are counted only after a moment.
      const closing = worker.close();
      const closed = within(closingMs, closing)
        .catch(() => within(load.inFlight > 0 ? graceMs : 0, closing))
        .catch(() => log.warn('stopped without the queue store'));
      const cutShort = setTimeout(() => shutdown.abort(new Failure('provider_unavailable')), graceMs);
      await within(closingMs, heartbeat.stop()).catch(() => undefined);
      await closed;
      clearTimeout(cutShort);
      await within(closingMs, replier.flush()).catch(() => undefined);
      await within(closingMs, queue.close()).catch(() => undefined);
      breaker.close();
      provider.close();
    },
  };
}

/** How long the store may take to let go. */
const closingMs = 1000;
/** A job that was started this often and never finished takes its workers down: it is given up. */
const mostStarts = 2;

function createWorker(pool: PoolDeps, load: Load, deps: Omit<ChatJobDeps, 'onFailure'>): Worker {
  const { provider, settings, config, store, workerName, log } = pool;
  const run = async (job: Job): Promise<string> => {
    const onFailure = (err: Failure) => log.warn({ err, jobId: job.id }, 'job without a reply');
    const answer = () => runChatJob(chatJobSchema.parse(job.data), job.timestamp, { ...deps, onFailure });
    const outcome = await load.track(answer);
    if (outcome.providerMs > 0) load.noteCall(outcome.providerMs);
    log.info({ jobId: job.id, ...facts(outcome) }, 'job answered');
    return encodeOutcome(outcome);
  };
  return store.createWorker(queueName(provider.id), run, {
    name: workerName,
    concurrency: settings.concurrency,
    lockDuration: config.WORKER_LOCK_MS,
    stalledInterval: config.WORKER_STALLED_CHECK_MS,
    maxStalledCount: mostStarts - 1,
    maxStartedAttempts: mostStarts,
  });
}

/** What of an outcome may be logged: everything but its text. */
function facts(outcome: Outcome): object {
  const { kind, queueMs, providerMs } = outcome;
  return { outcome: kind === 'failed' ? outcome.code : kind, queueMs, providerMs };
}

/**
 * A pool whose breaker is open takes no jobs, so that a healthy worker elsewhere gets them; to probe, it takes one at
 * a time. `pause` and `resume` make a new concurrency count at once instead of when the next job ends.
 */
function applyBreaker(worker: Worker, state: BreakerState, concurrency: number): void {
  worker.concurrency = state === 'half-open' ? 1 : concurrency;
  void worker.pause(true);
  if (state !== 'open') worker.resume();
}

const cleanIntervalMs = 10_000;
const mostCleaned = 1000;

/** BullMQ removes old records only when another job finishes; prompts must not outlive their time in an idle queue. */
function removeOldRecords(queue: Queue, log: Log): NodeJS.Timeout {
  const clean = async () => {
    await queue.clean(recordKeptMs, mostCleaned, 'completed');
    await queue.clean(recordKeptMs, mostCleaned, 'failed');
  };
  return setInterval(
    () => void clean().catch((err) => log.debug({ err }, 'records not cleaned')),
    cleanIntervalMs,
  );
}

const poolStates = { closed: 'serving', 'half-open': 'probing', open: 'paused' } as const;

async function describePool(
  { provider, settings, workerName }: PoolDeps,
  { breaker, load, queue }: { breaker: Breaker; load: Load; queue: Queue },
): Promise<PoolBeat> {
  const waiting = await queue.getWaitingCount();
  // Read after the wait for the store: a breaker may have opened meanwhile.
  const state = poolStates[breaker.state];
  return {
    v: 1,
    provider: provider.id,
    worker: workerName,
    state,
    concurrency: state === 'probing' ? 1 : settings.concurrency,
    inFlight: load.inFlight,
    waiting,
    meanJobMs: load.meanJobMs,
    hasDefaultModel: settings.model !== undefined,
  };
}
