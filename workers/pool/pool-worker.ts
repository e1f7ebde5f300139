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
import { withTimeout } from '../../shared/runtime/with-timeout.js';
import type { ActiveJobs } from '../job/active-jobs.js';
import { type ChatJobDeps, type JobEnd, runChatJob } from '../job/chat-job.js';
import type { DeltaPublisher, DeltaStream } from '../job/delta-publisher.js';
import type { JobTrace } from '../job/job-trace.js';
import type { LoadTracker } from '../job/load-tracker.js';
import type { NextAttempts } from '../job/next-attempt.js';
import { describeOutcome } from '../job/outcomes.js';
import type { PoolMetrics } from '../job/pool-metrics.js';
import { ReplyPublisher } from '../job/reply-publisher.js';
import type { Slot, Slots } from '../job/slots.js';
import { StoredResults } from '../job/stored-results.js';
import { NotBegun } from '../job/waiting-jobs.js';
import { describeFailure } from '../providers/error-classification.js';
import type { Backlog } from './backlog.js';
import type { LiveSettings } from './live-settings.js';
import { LockRenewal } from './lock-renewal.js';
import { chatIdOf, describeOwner, dropLongConversation, type QueuedJob, userOf } from './queued-job.js';
import { Requeue } from './requeue.js';

/** What the worker of a pool works with. */
export interface PoolWorkerDeps extends Pick<ChatJobDeps, 'provider' | 'account' | 'circuits'> {
  settings: Pick<LiveSettings, 'current'>;
  config: Pick<Config, 'WORKER_LOCK_MS' | 'WORKER_STALLED_CHECK_MS'>;
  store: QueueStore;
  relay: Relay;
  /** Name of this worker process, unique among all of them. */
  workerName: string;
  /** Those of all pools of this process. */
  jobs: ActiveJobs;
  slots: Slots;
  load: LoadTracker;
  backlog: Pick<Backlog, 'forget' | 'recordEmpty'>;
  deltas: DeltaPublisher;
  nextAttempts: NextAttempts;
  metrics: PoolMetrics;
  /** Called when a job begins and ends, also in a turn of the event loop that takes long. */
  onBetweenJobs?: () => void;
  startTrace?: ((job: QueuedJob) => JobTrace) | undefined;
  log: Log;
}

/** A job that runs; its token proves that this worker holds its lock. */
interface ActiveJob {
  job: QueuedJob;
  token: string;
  signal: AbortSignal;
  trace: JobTrace | undefined;
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
 * 5. the outcome is published on `reply.<api>`, to which the `JobClient` of the API process that added the job subscribes: it
 *    settles the caller's wait in `PendingReplies`.
 */
export class PoolWorker {
  /** BullMQ's worker; it takes jobs once this one has started. */
  readonly bullWorker: Worker;
  readonly #deps: PoolWorkerDeps;
  readonly #locks: LockRenewal;
  readonly #requeue: Requeue;
  readonly #storedResults: StoredResults;
  readonly #replies: ReplyPublisher;

  constructor(deps: PoolWorkerDeps) {
    const { provider, settings, config, store, relay, workerName, log } = deps;
    this.#deps = deps;
    this.#requeue = new Requeue(log, store.now);
    this.#storedResults = new StoredResults({ records: store.records, log, now: store.now });
    this.#replies = new ReplyPublisher({ relay, storedResults: this.#storedResults, log });
    const run = (job: QueuedJob, token?: string) => this.#process(job, token);
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
    const onLost = (locks: ReadonlyMap<string, string>) => deps.jobs.abortLost(locks);
    this.#locks = new LockRenewal({ worker: this.bullWorker, lockMs: config.WORKER_LOCK_MS, onLost, log });
    this.#listen();
  }

  /**
   * The locks of jobs whose outcomes are not stored yet: `close` waits for those jobs even in an outage of the store.
   */
  get locks(): Pick<LockRenewal, 'jobIds'> {
    return this.#locks;
  }

  async start(): Promise<void> {
    const { provider, relay, jobs, deltas } = this.#deps;
    // Before the first job is taken: what is published before the subscription is lost.
    await Promise.all([
      relay.subscribe(topics.cancel(provider.id), cancelSchema, (cancel) => jobs.onCancel(cancel)),
      relay.subscribe(topics.resend(provider.id), resendSchema, (resend) => deltas.onResend(resend)),
    ]);
    this.#locks.start();
    this.bullWorker.run().catch((error) => this.bullWorker.emit('error', error));
  }

  /**
   * Takes no more jobs and waits for the running ones; those that outlast their grace are aborted and fail. BullMQ's worker
   * waits for its store without end, so without jobs it is not waited for: it may have taken one just now, which is why they
   * are counted only after a moment.
   */
  async close({ graceMs, streamGraceMs = graceMs }: Grace): Promise<void> {
    const closing = this.bullWorker.close();
    const reason = new Failure('provider_unavailable');
    const abort = setTimeout(() => this.#deps.jobs.abortAll(reason), graceMs);
    const endStreams = () => this.#deps.jobs.abort(this.#deps.deltas.jobIds, reason);
    const abortStreams = setTimeout(endStreams, streamGraceMs);
    await withTimeout(closingMs, closing)
      .catch(() => withTimeout(this.#locks.jobIds.size > 0 ? graceMs : 0, closing))
      .catch(() => this.#deps.log.warn('stopped without the queue store'));
    clearTimeout(abort);
    clearTimeout(abortStreams);
    this.#locks.stop();
    await withTimeout(closingMs, this.#replies.flush()).catch(() => undefined);
  }

  #listen(): void {
    const { backlog } = this.#deps;
    this.bullWorker
      .on('active', () => backlog.forget())
      .on('drained', () => backlog.recordEmpty())
      .on('completed', (job: Job<ChatJobPayload>, outcome: string) => this.#onCompleted(job, outcome))
      .on('failed', (job, error) => this.#onFailed(job, error));
  }

  async #process(job: QueuedJob, token = ''): Promise<string> {
    const { jobs, load, metrics, log } = this.#deps;
    const { id = '' } = job;
    this.#deps.onBetweenJobs?.();
    const trace = this.#deps.startTrace?.(job);
    const work = (signal: AbortSignal) => this.#runInSlot({ job, token, signal, trace });
    const running = load.track(() => jobs.run(chatIdOf(job), work, { ...describeOwner(job), token }));
    const { own, outcome } = await (trace?.watchEnd(running) ?? running);
    this.#locks.renewIfLate();
    this.#deps.onBetweenJobs?.();
    load.recordOutcome(own);
    const next = nextOf(outcome)?.provider;
    metrics.recordOutcome(own, next);
    const facts = describeOutcome(own, next);
    log.info({ jobId: id, ...userOf(job), ...facts, ...trace?.logFields }, 'job completed');
    const encoded = encodeOutcome(outcome);
    // Anything but a reply that nobody has begun to read is final once the store has it: where the lock was lost, another worker answers.
    if ('text' in outcome && outcome.callId === undefined) this.#replies.publishOutcome(job, encoded);
    return encoded;
  }

  /** Throws `HandedBack` when the job has gone back to its queue. */
  async #runInSlot(active: ActiveJob): Promise<JobEnd> {
    const { job, token } = active;
    const { id = '', timestamp: addedAt, priority = 0 } = job;
    const slot = this.#deps.slots.open({ priority, addedAt });
    try {
      if (isNewer(job.data)) {
        this.#locks.release(id, token);
        return await this.#requeue.deferToNewerRelease(job, token);
      }
      return await this.#runChatJob(active, slot);
    } catch (error) {
      if (!(error instanceof NotBegun)) throw error;
      this.#locks.release(id, token);
      return await this.#requeue.requeue(job, token);
    } finally {
      slot.close();
    }
  }

  async #runChatJob({ job, signal, trace }: ActiveJob, slot: Slot): Promise<JobEnd> {
    const { provider, settings, store, account, circuits, load, metrics, log } = this.#deps;
    const { id = '', timestamp: enqueuedAt, priority = 0 } = job;
    const chatId = chatIdOf(job);
    const parsed = chatJobSchema.parse(job.data);
    // The job of a fallback goes on where this one ends.
    const chatJob = trace ? { ...parsed, traceparent: trace.traceparent } : parsed;
    const isRestarted = job.attemptsStarted > 1;
    await slot.take();
    const nextAttempt = this.#deps.nextAttempts.of({ chatId, chatJob, priority, signal });
    const begunNext = isRestarted ? await nextAttempt?.find() : undefined;
    // The reply of a chat is one attempt's to write.
    using deltas = begunNext ? undefined : this.#openDeltas(chatJob, chatId);
    return await runChatJob(chatJob, enqueuedAt, {
      ...{ deltas, nextAttempt, isRestarted, begunNext, slot, load, metrics },
      provider: trace?.watchCalls(provider) ?? provider,
      settings: settings.current,
      account,
      circuits,
      now: store.now,
      mayRequeue: () => this.#requeue.isFirst(id),
      storedResult: this.#storedResults.of({ id: chatId, expiresAt: chatJob.keptUntil }, signal),
      stop: signal,
      onFailure: (failure) =>
        log.warn({ jobId: id, ...userOf(job), ...describeFailure(failure) }, 'job failed'),
    });
  }

  #openDeltas(job: ChatJob, chatId: string): DeltaStream | undefined {
    const { provider, model = this.#deps.settings.current.model } = job;
    const writer = job.earlier?.length ? { provider, model } : undefined;
    return job.stream ? this.#deps.deltas.open(chatId, job.replyTo, writer) : undefined;
  }

  #onCompleted(job: Job<ChatJobPayload>, outcome: string): void {
    dropLongConversation(job, this.#deps.log);
    this.#replies.publishStored(job, outcome);
  }

  /** A job ended in an unexpected error, or was given up; BullMQ may know no more of it than that. */
  #onFailed(job: Job<ChatJobPayload> | undefined, err: Error): void {
    const { metrics, log } = this.#deps;
    metrics.recordBroken();
    log.error({ err, jobId: job?.id }, 'job broke');
    if (job === undefined) return;
    dropLongConversation(job, log);
    this.#replies.publishFailure(job);
  }
}
