import type { Worker } from 'bullmq';
import type { Config } from '../../shared/config/config.js';
import { Failure } from '../../shared/failures.js';
import { cancelSchema, queueName, topics } from '../../shared/protocol/messages.js';
import { resendSchema } from '../../shared/protocol/parts.js';
import type { LedgerWriter } from '../../shared/queue/ledger-writer.js';
import type { QueueStore } from '../../shared/queue/queue-store.js';
import type { Relay } from '../../shared/queue/relay.js';
import type { Log } from '../../shared/runtime/log.js';
import { closedInTime, withTimeout } from '../../shared/runtime/retry.js';
import type { Tracing } from '../../shared/runtime/tracing.js';
import type { Gate } from '../gate/gate.js';
import { type CallChainDeps, callChain } from '../job/call-chain.js';
import type { ChatJobDeps } from '../job/chat-job.js';
import type { DeltaPublisher } from '../job/delta-publisher.js';
import type { NextAttempts } from '../job/next-attempt.js';
import { RefusedParts } from '../job/refused-parts.js';
import { RetryBudget } from '../job/retry.js';
import type { JobListener } from '../job/running-job.js';
import type { RunningJobs } from '../job/running-jobs.js';
import { ReplyPublisher, StoredResults } from '../job/stored-results.js';
import type { Provider } from '../providers/provider.js';
import type { Backlog } from './backlog.js';
import { Intake } from './intake.js';
import type { LiveSettings } from './live-settings.js';
import { LockRenewal } from './lock-renewal.js';
import type { PoolMetrics } from './pool-metrics.js';

/** What the workers of all pools of a process share. */
export interface PoolWorkerTools {
  config: Pick<Config, 'WORKER_LOCK_MS' | 'WORKER_STALLED_CHECK_MS'>;
  store: QueueStore;
  relay: Relay;
  /** Name of this worker process, unique among all of them. */
  workerName: string;
  /** The jobs of all pools of this process. */
  jobs: RunningJobs;
  deltas: DeltaPublisher;
  nextAttempts: Pick<NextAttempts, 'find' | 'begin'>;
  ledger: Pick<LedgerWriter, 'append' | 'flush'>;
  readTexts: ChatJobDeps['readTexts'];
  withImages?: CallChainDeps['withImages'];
  loadBlobs?: CallChainDeps['loadBlobs'];
  fill?: CallChainDeps['fill'];
  tracing?: Tracing | undefined;
  log: Log;
}

interface PoolWorkerDeps extends PoolWorkerTools {
  provider: Provider;
  settings: Pick<LiveSettings, 'current'>;
  gate: Pick<Gate, 'run'>;
  metrics: Pick<PoolMetrics, 'watchCall' | 'countJob'>;
  times: ChatJobDeps['times'];
  backlog: Pick<Backlog, 'forget' | 'recordEmpty'>;
  /** Listeners of this pool's jobs. */
  listeners: readonly JobListener[];
  /** The clock of the locks, which never jumps; absent means the machine's. */
  now?: (() => number) | undefined;
}

/** How long jobs may take to finish when the worker stops, in milliseconds. */
export interface Grace {
  graceMs: number;
  /** For those whose replies are read as they are written; absent means the same. */
  streamGraceMs?: number;
}

/** A job that was started this often and never finished takes its workers down: it is given up. */
const maxStarts = 2;
/** How long BullMQ's worker may take to let go of the store, in milliseconds. */
const closingMs = 1000;

/** Opens and closes BullMQ's worker of a pool, its subscriptions and the renewal of locks; `Intake` has the jobs. */
export class PoolWorker {
  /** BullMQ's worker; it takes jobs once this one has started. */
  readonly bullWorker: Worker;
  readonly #deps: PoolWorkerDeps;
  readonly #locks: LockRenewal;
  readonly #replies: ReplyPublisher;

  constructor(deps: PoolWorkerDeps) {
    const { provider, settings, config, store, relay, workerName, log } = deps;
    const lockMs = config.WORKER_LOCK_MS;
    const storedResults = new StoredResults({ records: store.records, log, now: store.now });
    this.#deps = deps;
    this.#replies = new ReplyPublisher({ relay, storedResults, log });
    this.#locks = new LockRenewal({
      ...deps,
      extendLocks: (...locks) => this.bullWorker.extendJobLocks(...locks),
      provider: provider.id,
      lockMs,
    });
    const intake = new Intake({
      ...deps,
      call: callChain({ ...deps, refused: new RefusedParts(), budget: new RetryBudget() }),
      locks: this.#locks,
      replies: this.#replies,
      storedResults,
    });
    this.bullWorker = store.createWorker(queueName(provider.id), intake.process, {
      name: workerName,
      autorun: false,
      concurrency: settings.current.concurrency,
      lockDuration: lockMs,
      skipLockRenewal: true,
      stalledInterval: config.WORKER_STALLED_CHECK_MS,
      // Not by starts in all: a job that was requeued has taken no worker down.
      maxStalledCount: maxStarts - 1,
    });
    intake.attach(this.bullWorker);
  }

  async start(): Promise<void> {
    const { provider, relay, jobs, deltas } = this.#deps;
    // Before the first job is taken: what is published before the subscription is lost.
    await Promise.all([
      relay.subscribe(topics.cancel(provider.id), cancelSchema, (cancel) => jobs.cancel(cancel)),
      relay.subscribe(topics.resend(provider.id), resendSchema, (resend) => deltas.onResend(resend)),
    ]);
    this.#locks.start();
    this.bullWorker.run().catch((error) => this.bullWorker.emit('error', error));
  }

  /**
   * Takes no new jobs and waits for the running ones; jobs that outlast their grace are aborted and fail. BullMQ's
   * worker waits for its store without end, so only jobs whose outcomes are not stored yet are waited for: it may have
   * taken one just now, which is why they are counted only after a moment.
   */
  async close({ graceMs, streamGraceMs = graceMs }: Grace): Promise<void> {
    const { provider, jobs, ledger, log } = this.#deps;
    const closing = this.bullWorker.close();
    const reason = new Failure('provider_unavailable');
    const abort = setTimeout(() => jobs.abortAll(reason), graceMs);
    const abortStreams = setTimeout(() => jobs.abortStreams(reason), streamGraceMs);
    await withTimeout(closingMs, closing)
      .catch(() => withTimeout(jobs.loadOf(provider.id).unsettled > 0 ? graceMs : 0, closing))
      .catch(() => log.warn('stopped without the queue store'));
    for (const timer of [abort, abortStreams]) clearTimeout(timer);
    this.#locks.stop();
    await closedInTime(Promise.all([this.#replies.flush(), ledger.flush()]));
  }
}
