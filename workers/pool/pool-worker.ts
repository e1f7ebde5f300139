import type { Job, Worker } from 'bullmq';
import type { Config } from '../../shared/config/config.js';
import { Failure } from '../../shared/failures.js';
import { resendSchema } from '../../shared/protocol/deltas.js';
import {
  type ChatJob,
  type ChatJobPayload,
  cancelSchema,
  chatJobSchema,
  queueName,
  topics,
} from '../../shared/protocol/messages.js';
import { encodeOutcome, nextOf } from '../../shared/protocol/outcome.js';
import { isNewer } from '../../shared/protocol/version.js';
import type { QueueStore } from '../../shared/queue/queue-store.js';
import type { Relay } from '../../shared/queue/relay.js';
import type { Log } from '../../shared/runtime/log.js';
import type { Tracing } from '../../shared/runtime/tracing.js';
import { withTimeout } from '../../shared/runtime/with-timeout.js';
import { NotBegun } from '../gate/ends.js';
import type { Slots } from '../gate/slots.js';
import { type CallChainDeps, callChain, type Next } from '../job/call-chain.js';
import { type ChatJobDeps, runChatJob } from '../job/chat-job.js';
import type { DeltaPublisher, DeltaStream } from '../job/delta-publisher.js';
import { JobTrace } from '../job/job-trace.js';
import { ModelNotes } from '../job/model-notes.js';
import type { NextAttempts } from '../job/next-attempt.js';
import { describeOutcome, type JobEnd } from '../job/outcomes.js';
import type { PoolMetrics } from '../job/pool-metrics.js';
import { ReplyPublisher } from '../job/reply-publisher.js';
import { type JobListener, type QueuedJob, RunningJob } from '../job/running-job.js';
import type { RunningJobs } from '../job/running-jobs.js';
import { StoredResults } from '../job/stored-results.js';
import { describeFailure } from '../providers/error-classification.js';
import type { Backlog } from './backlog.js';
import type { LiveSettings } from './live-settings.js';
import { LockRenewal, type LockRenewalDeps } from './lock-renewal.js';
import { dropLongRequest } from './long-request.js';
import { type RequeuableJob, Requeue } from './requeue.js';

/** The dependencies of the pools of a process. */
export interface PoolWorkerTools extends Pick<CallChainDeps, 'withImages'> {
  config: Pick<Config, 'WORKER_LOCK_MS' | 'WORKER_STALLED_CHECK_MS'>;
  store: QueueStore;
  relay: Relay;
  /** Name of this worker process, unique among all of them. */
  workerName: string;
  /** Those of all pools of this process. */
  jobs: RunningJobs;
  deltas: DeltaPublisher;
  nextAttempts: NextAttempts;
  tracing?: Tracing | undefined;
  log: Log;
}

interface PoolWorkerDeps
  extends PoolWorkerTools,
    Pick<ChatJobDeps, 'times'>,
    Pick<CallChainDeps, 'provider' | 'gate'>,
    Pick<LockRenewalDeps, 'now'> {
  settings: Pick<LiveSettings, 'current'>;
  slots: Slots;
  backlog: Pick<Backlog, 'forget' | 'recordEmpty'>;
  metrics: PoolMetrics;
  /** Those of the jobs of this pool, called also in a turn of the event loop that takes long. */
  listeners: readonly JobListener[];
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

/**
 * The worker of a pool. For each job it takes off the queue, in order:
 * 1. a job of a newer release goes back to the queue, for a worker that can read it;
 * 2. the job waits for a slot;
 * 3. `runChatJob` answers it; a job that has made no call may go back to the queue;
 * 4. BullMQ stores the outcome in the job's record;
 * 5. the outcome is published on `reply.<api>`, to which the `JobClient` of the API process that added the job
 *    subscribes: it settles the chat in `LiveChats`.
 */
export class PoolWorker {
  /** BullMQ's worker; it takes jobs once this one has started. */
  readonly bullWorker: Worker;
  readonly #deps: PoolWorkerDeps;
  readonly #locks: LockRenewal;
  readonly #requeue: Requeue;
  readonly #call: Next;
  readonly #storedResults: StoredResults;
  readonly #replies: ReplyPublisher;
  readonly #listeners: readonly JobListener[];

  constructor(deps: PoolWorkerDeps) {
    const { provider, settings, config, store, relay, workerName, log } = deps;
    this.#deps = deps;
    this.#requeue = new Requeue(log, store.now);
    this.#call = callChain({ ...deps, notes: new ModelNotes() });
    this.#storedResults = new StoredResults({ records: store.records, log, now: store.now });
    this.#replies = new ReplyPublisher({ relay, storedResults: this.#storedResults, log });
    const run = (queued: RequeuableJob) => this.#process(queued);
    this.bullWorker = store.createWorker(queueName(provider.id), run, {
      name: workerName,
      autorun: false,
      concurrency: settings.current.concurrency,
      lockDuration: config.WORKER_LOCK_MS,
      skipLockRenewal: true,
      stalledInterval: config.WORKER_STALLED_CHECK_MS,
      // Not by starts in all: a job that was requeued has taken no worker down.
      maxStalledCount: maxStarts - 1,
    });
    this.#locks = new LockRenewal({
      ...{ worker: this.bullWorker, provider: provider.id, jobs: deps.jobs, log, now: deps.now },
      lockMs: config.WORKER_LOCK_MS,
      describe: (queued, token) => this.#describe(queued, token),
    });
    this.#listeners = [
      { ended: (job, end, error) => job.trace?.end(end, error) },
      { ended: () => this.#locks.renewIfLate() },
      ...deps.listeners,
    ];
    this.#listen();
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
    const { provider, jobs, log } = this.#deps;
    const closing = this.bullWorker.close();
    const reason = new Failure('provider_unavailable');
    const abort = setTimeout(() => jobs.abortAll(reason), graceMs);
    const abortStreams = setTimeout(() => jobs.abortStreams(reason), streamGraceMs);
    await withTimeout(closingMs, closing)
      .catch(() => withTimeout(jobs.loadOf(provider.id).unsettled > 0 ? graceMs : 0, closing))
      .catch(() => log.warn('stopped without the queue store'));
    for (const timer of [abort, abortStreams]) clearTimeout(timer);
    this.#locks.stop();
    await withTimeout(closingMs, this.#replies.flush()).catch(() => undefined);
  }

  #listen(): void {
    const { backlog, log } = this.#deps;
    this.bullWorker
      .on('active', () => backlog.forget())
      .on('drained', () => backlog.recordEmpty())
      .on('completed', (queued: Job<ChatJobPayload>, outcome: string) => {
        dropLongRequest(queued, log);
        this.#replies.publishStored(this.#find(queued), outcome);
      })
      .on('failed', (job, error) => this.#onFailed(job, error));
  }

  #describe(queued: QueuedJob, token = ''): RunningJob {
    const { provider, slots, store } = this.#deps;
    const slot = slots.open({ priority: queued.priority ?? 0, addedAt: queued.timestamp });
    const listeners = this.#listeners;
    return new RunningJob({ queued, token, provider: provider.id, slot, now: store.now, listeners });
  }

  async #process(queued: RequeuableJob): Promise<string> {
    const { jobs, tracing, log } = this.#deps;
    const job = jobs.find(queued);
    if (!job) throw new Error('job not taken');
    job.trace = tracing && new JobTrace(tracing, job);
    job.taken();
    let end: JobEnd;
    try {
      end = await this.#runInSlot(job, queued);
    } catch (error) {
      job.end(undefined, error);
      throw error;
    }
    job.end(end);
    const { own, outcome } = end;
    const described = describeOutcome(own, nextOf(outcome)?.provider);
    log.info({ ...namesOf(job), ...described, ...job.trace?.logFields }, 'job completed');
    const encoded = encodeOutcome(outcome);
    // A reply without readers counts even if the lock was lost. Everything else is final only in the store, because
    // another worker answers where the lock was lost.
    if ('text' in outcome && outcome.callId === undefined) this.#replies.publishOutcome(job, encoded);
    return encoded;
  }

  /** Throws `HandedBack` when the job has gone back to its queue. */
  async #runInSlot(job: RunningJob, queued: RequeuableJob): Promise<JobEnd> {
    try {
      if (isNewer(queued.data)) {
        job.holdsLock = false;
        return await this.#requeue.deferToNewerRelease(queued, job.token);
      }
      return await this.#runChatJob(job);
    } catch (error) {
      if (!(error instanceof NotBegun)) throw error;
      job.holdsLock = false;
      return await this.#requeue.requeue(queued, job.token, error.isDelayed);
    } finally {
      job.slot.close();
    }
  }

  async #runChatJob(job: RunningJob): Promise<JobEnd> {
    const { settings, times, nextAttempts, log } = this.#deps;
    const { queued, slot, trace } = job;
    const parsed = chatJobSchema.parse(queued.data);
    // The job of a fallback goes on where this one ends.
    const chatJob = trace ? { ...parsed, traceparent: trace.traceparent } : parsed;
    await slot.take();
    const isRestarted = queued.attemptsStarted > 1;
    const begunNext = isRestarted ? await nextAttempts.find(job, chatJob) : undefined;
    // The reply of a chat is one attempt's to write.
    using _ = begunNext ? undefined : this.#openDeltas(job, chatJob);
    return await runChatJob(job, chatJob, {
      ...{ nextAttempts, isRestarted, begunNext, times, settings: settings.current },
      call: this.#call,
      storedResults: this.#storedResults,
      onFailure: (failure) => log.warn({ ...namesOf(job), ...describeFailure(failure) }, 'job failed'),
    });
  }

  #openDeltas(job: RunningJob, chatJob: ChatJob): DeltaStream | undefined {
    if (!chatJob.stream) return undefined;
    const { provider, model = this.#deps.settings.current.model, earlier } = chatJob;
    return this.#deps.deltas.open(job, chatJob, earlier?.length ? { provider, model } : undefined);
  }

  /** A job ended in an unexpected error, or was given up; BullMQ may have no other facts about it. */
  #onFailed(queued: Job<ChatJobPayload> | undefined, err: Error): void {
    const { metrics, log } = this.#deps;
    metrics.countJob('internal');
    log.error({ err, jobId: queued?.id }, 'job broke');
    if (!queued) return;
    dropLongRequest(queued, log);
    this.#replies.publishFailure(this.#find(queued));
  }

  #find(queued: QueuedJob): RunningJob {
    return this.#deps.jobs.find(queued) ?? this.#describe(queued);
  }
}

const namesOf = ({ id: jobId, facts: { user } }: RunningJob) => ({ jobId, user });
