import type { Job, Worker } from 'bullmq';
import { variableOf } from '../../shared/config/pool-config.js';
import type { ProviderId } from '../../shared/contracts/contract.js';
import type { Failure } from '../../shared/failures.js';
import { withoutContent } from '../../shared/protocol/chat-content.js';
import { type ChatJob, type ChatJobPayload, chatJobSchema } from '../../shared/protocol/messages.js';
import { decodeOutcome, encodeOutcome, nextOf } from '../../shared/protocol/outcome.js';
import { isNewer } from '../../shared/protocol/version.js';
import { removeTexts } from '../../shared/queue/blobs.js';
import type { LedgerWriter } from '../../shared/queue/ledger-writer.js';
import { aroundJobs } from '../../shared/queue/patches/process-job.js';
import { HandedBack, type QueueStore } from '../../shared/queue/queue-store.js';
import type { Log } from '../../shared/runtime/log.js';
import type { Tracing } from '../../shared/runtime/tracing.js';
import { NotBegun } from '../gate/gated-call.js';
import { type ChatJobDeps, runChatJob } from '../job/chat-job.js';
import type { DeltaPublisher } from '../job/delta-publisher.js';
import type { DeltaStream } from '../job/delta-stream.js';
import { JobTrace } from '../job/job-trace.js';
import { lostRunsOf, runEntryOf } from '../job/ledger-entries.js';
import type { NextAttempts } from '../job/next-attempt.js';
import { describeOutcome, type JobEnd } from '../job/outcomes.js';
import { type JobListener, type QueuedJob, RunningJob } from '../job/running-job.js';
import type { RunningJobs } from '../job/running-jobs.js';
import type { ReplyPublisher } from '../job/stored-results.js';
import { describeFailure } from '../providers/errors/error-classification.js';
import type { Provider } from '../providers/provider.js';
import type { Backlog } from './backlog.js';
import type { LiveSettings } from './live-settings.js';
import type { LockRenewal } from './lock-renewal.js';
import type { PoolMetrics } from './pool-metrics.js';

interface IntakeDeps {
  provider: Pick<Provider, 'id'>;
  settings: Pick<LiveSettings, 'current'>;
  store: Pick<QueueStore, 'now' | 'blobs'>;
  jobs: Pick<RunningJobs, 'open' | 'close' | 'ofChat' | 'find'>;
  locks: Pick<LockRenewal, 'renewIfLate'>;
  call: ChatJobDeps['call'];
  readTexts: ChatJobDeps['readTexts'];
  times: ChatJobDeps['times'];
  storedResults: ChatJobDeps['storedResults'];
  replies: Pick<ReplyPublisher, 'publish' | 'publishFailure'>;
  deltas: Pick<DeltaPublisher, 'open'>;
  nextAttempts: Pick<NextAttempts, 'find' | 'begin'>;
  backlog: Pick<Backlog, 'forget' | 'recordEmpty'>;
  metrics: Pick<PoolMetrics, 'countJob'>;
  ledger: Pick<LedgerWriter, 'append'>;
  tracing?: Tracing | undefined;
  /** Listeners of this pool's jobs. They run even while the event loop is blocked. */
  listeners: readonly JobListener[];
  log: Log;
}

/**
 * The whole life of a job in a pool, from its fetch by BullMQ until BullMQ is done with it. In order:
 * 1. `take` makes its `RunningJob`, the only one; an earlier run of it here loses its lock, and locks that are late are
 *    renewed;
 * 2. a job of a newer release goes back to the queue, for a worker that can read it;
 * 3. `runChatJob` answers it; a job that has made no call may go back to the queue;
 * 4. its outcome is logged and encoded, and a reply without readers is published on `reply.<api>`, to which the API
 *    process that added the job subscribes;
 * 5. its calls, and how its chat ended, are appended to the ledger's outbox;
 * 6. BullMQ stores the outcome in the job's record (`completed`), or gives the job up (`failed`): then any other end is
 *    published;
 * 7. `RunningJobs` forgets the job, and its lock is no longer renewed.
 */
export class Intake {
  readonly #deps: IntakeDeps;
  readonly #listeners: readonly JobListener[];
  #hasDeferred = false;

  constructor(deps: IntakeDeps) {
    this.#deps = deps;
    this.#listeners = [
      { ended: (job, end, error) => job.trace?.end(end, error) },
      { ended: () => deps.locks.renewIfLate() },
      ...deps.listeners,
    ];
  }

  /** To be called before the worker fetches jobs; `process` has to be its processor. */
  attach(worker: Worker): void {
    const { jobs, ledger, backlog } = this.#deps;
    aroundJobs(worker, async (queued, token, process) => {
      const job = this.take(queued, token);
      job.lostRecorded = ledger.append(...lostRunsOf(job));
      return process().finally(async () => {
        // The processor of one that is given up does not run.
        await job.lostRecorded;
        jobs.close(job);
      });
    });
    worker
      .on('active', () => backlog.forget())
      .on('drained', () => backlog.recordEmpty())
      .on('completed', (queued, outcome) => this.#onCompleted(queued, outcome))
      .on('failed', (queued, error) => this.#onFailed(queued, error));
  }

  take(queued: QueuedJob, token: string): RunningJob {
    const { provider, jobs, locks, store, log } = this.#deps;
    const job = new RunningJob({
      queued,
      token,
      provider: provider.id,
      now: store.now,
      listeners: this.#listeners,
    });
    // The store hands out a job again only once its lock has ended.
    const lost = jobs.ofChat(job.chatId).filter((other) => other.id === job.id && other.loseLock());
    if (lost.length > 0) log.warn({ jobIds: [job.id] }, 'jobs lost to another worker');
    jobs.open(job);
    locks.renewIfLate();
    return job;
  }

  /** BullMQ's processor. Gives the outcome as the record has it; throws `HandedBack` if the job went back. */
  readonly process = async (queued: RequeuableJob): Promise<string> => {
    const { jobs, tracing } = this.#deps;
    const job = jobs.find(queued);
    if (!job) throw new Error('job not taken');
    job.trace = tracing && new JobTrace(tracing, job);
    job.taken();
    const end = await this.#runOrHandBack(job, queued).catch(async (error) => {
      job.end(undefined, error);
      await this.#record(job, { error });
      throw error;
    });
    job.end(end);
    const encoded = this.#encode(job, end);
    await this.#record(job, { end });
    return encoded;
  };

  /** A job that goes back to the queue without a call has nothing to record. */
  async #record(job: RunningJob, { end, error }: { end?: JobEnd; error?: unknown }): Promise<void> {
    const goesOn = error instanceof HandedBack;
    if (!goesOn || job.calls.length > 0) await this.#deps.ledger.append(runEntryOf(job, { end, goesOn }));
    await job.lostRecorded;
  }

  async #runOrHandBack(job: RunningJob, queued: RequeuableJob): Promise<JobEnd> {
    try {
      return await this.#run(job);
    } catch (error) {
      if (!(error instanceof NotBegun)) throw error;
      const { store, log } = this.#deps;
      job.holdsLock = false;
      const pauseMs = error.isDelayed ? pauseFor(queued, store.now()) : undefined;
      return await handBack(queued, job.token, { pauseMs, log });
    }
  }

  async #run(job: RunningJob): Promise<JobEnd> {
    const { settings, nextAttempts, log } = this.#deps;
    const { queued, trace } = job;
    if (isNewer(queued.data)) {
      // There may be thousands: only the first is a warning.
      const level = this.#hasDeferred ? 'debug' : 'warn';
      log[level]({ jobId: job.id }, 'job of a newer release left to its workers');
      this.#hasDeferred = true;
      throw new NotBegun(true);
    }
    const parsed = chatJobSchema.parse(queued.data);
    // The job of a fallback goes on where this one ends.
    const chatJob = trace ? { ...parsed, traceparent: trace.traceparent } : parsed;
    const isRestarted = queued.attemptsStarted > 1;
    const begunNext = isRestarted ? await nextAttempts.find(job, chatJob) : undefined;
    // The reply of a chat is one attempt's to write.
    using _ = begunNext ? undefined : this.#openDeltas(job, chatJob);
    return await runChatJob(job, chatJob, {
      ...this.#deps,
      settings: settings.current,
      isRestarted,
      begunNext,
      onFailure: (failure) => {
        const limit = describeLimit(failure, chatJob.provider);
        log.warn({ ...namesOf(job), ...describeFailure(failure), ...limit }, 'job failed');
      },
    });
  }

  #openDeltas(job: RunningJob, chatJob: ChatJob): DeltaStream | undefined {
    if (!chatJob.stream) return undefined;
    const { provider, model = this.#deps.settings.current.model, earlier } = chatJob;
    return this.#deps.deltas.open(job, chatJob, earlier?.length ? { provider, model } : undefined);
  }

  #encode(job: RunningJob, { own, outcome }: JobEnd): string {
    const { replies, log } = this.#deps;
    const described = describeOutcome(own, nextOf(outcome)?.provider);
    log.info({ ...namesOf(job), ...described, ...job.trace?.logFields }, 'job completed');
    const encoded = encodeOutcome(outcome);
    // A reply without readers counts even if the lock was lost. Everything else is final only in the store, because
    // another worker answers where the lock was lost.
    if ('text' in outcome && outcome.callId === undefined) replies.publish(job, encoded);
    return encoded;
  }

  #onCompleted(queued: Job<ChatJobPayload>, outcome: string): void {
    const { jobs, replies, log } = this.#deps;
    const job = jobs.find(queued);
    if (job) replies.publish(job, outcome, { isStored: true });
    dropLongRequest(queued, log);
    if (queued.data?.texts && !nextOf(decodeOutcome(outcome))) this.#removeTexts(queued);
  }

  /** A job ended in an unexpected error, or was given up; BullMQ may have no other facts about it. */
  #onFailed(queued: Job<ChatJobPayload> | undefined, err: Error): void {
    const { jobs, replies, metrics, log } = this.#deps;
    metrics.countJob('internal');
    log.error({ err, jobId: queued?.id }, 'job broke');
    const job = queued && jobs.find(queued);
    if (job) replies.publishFailure(job);
    if (!queued) return;
    dropLongRequest(queued, log);
    // A worker that died with it may have begun its next attempt; then time removes them.
    if (queued.data?.texts && !queued.data.fallback?.length) this.#removeTexts(queued);
  }

  #removeTexts(queued: Job<ChatJobPayload>): void {
    const { store, log } = this.#deps;
    const removing = removeTexts(store.blobs, queued);
    removing.catch((err) => log.debug({ err, jobId: queued.id }, 'texts not removed'));
  }
}

/** The conversation and the tools of a job that has ended are not read again, and would fill the store. */
function dropLongRequest(queued: Job<ChatJobPayload>, log: Log): void {
  // Another release may have written it.
  const rest = withoutContent(queued.data ?? {});
  const dropped = rest && queued.updateData(rest);
  dropped?.catch((err) => log.debug({ err, jobId: queued.id }, 'request not dropped'));
}

/** For operators: the time limit that ended a call, and the variable that sets it. */
const describeLimit = ({ facts: { limit } }: Failure, provider: ProviderId): object =>
  limit ? { limitMs: limit.ms, variable: variableOf(provider, limit.setting) } : {};

const namesOf = ({ id: jobId, facts: { user } }: RunningJob) => ({ jobId, user });

/** The part of BullMQ's job that is needed to put it back into its queue. */
interface RequeuableJob extends QueuedJob {
  moveToWait(token?: string): Promise<unknown>;
  moveToDelayed(timestamp: number, token?: string): Promise<unknown>;
}

const minPauseMs = 200;
const maxPauseMs = 5000;

/** The pause of a job that other workers may not be able to do either, in milliseconds; it grows with the job's age. */
export const pauseFor = ({ timestamp }: Pick<QueuedJob, 'timestamp'>, now: number): number =>
  // PostgreSQL accepts whole milliseconds only.
  Math.min(maxPauseMs, Math.max(minPauseMs, Math.round((now - timestamp) / 2)));

/** Puts a job back into its queue, for any worker to take after the pause. Throws `HandedBack`: it has not stalled. */
export async function handBack(
  job: Pick<RequeuableJob, 'id' | 'moveToWait' | 'moveToDelayed'>,
  token: string,
  { pauseMs, log }: { pauseMs?: number | undefined; log: Log },
): Promise<never> {
  const moving = pauseMs ? job.moveToDelayed(Date.now() + pauseMs, token) : job.moveToWait(token);
  // Without the store the job's lock expires, and another worker takes it over.
  await moving.catch((err) => log.debug({ err, jobId: job.id }, 'job not requeued'));
  throw new HandedBack();
}
