import { setTimeout as delay } from 'node:timers/promises';
import { Job, type Queue } from 'bullmq';
import type { ProviderId } from '../../../shared/contract.js';
import { jobIdOf } from '../../../shared/protocol/attempts.js';
import type { ChatJobPayload } from '../../../shared/protocol/messages.js';
import {
  brokenOutcome,
  decodeOutcome,
  givenUpOutcome,
  nextOf,
  type Outcome,
} from '../../../shared/protocol/outcome.js';
import { decodeStoredResult, encodeStoredResult, resultKey } from '../../../shared/protocol/stored-chat.js';
import { isNewer } from '../../../shared/protocol/version.js';
import type { QueueStore, StoredJob } from '../../../shared/queue/queue-store.js';
import type { Log } from '../../../shared/runtime/log.js';
import { storeTimeoutMs, withTimeout } from '../../../shared/runtime/with-timeout.js';
import { LostJobs } from './lost-jobs.js';
import type { PendingJob, PendingReplies } from './pending-replies.js';
import type { StrandedJobs } from './stranded-jobs.js';
import { refuseNewer } from './version-guard.js';

/** What the records say of a job: `unknown` when there is none, because it was never added or has expired. */
export type JobResult =
  | { readonly state: 'running' | 'unknown' }
  /** `wasTaken`: a worker has taken it, or an earlier attempt at the chat, before. */
  | { readonly state: 'queued'; readonly wasTaken?: true }
  | { readonly state: 'settled'; readonly outcome: Outcome; readonly settledAt?: number };

interface JobResultsDeps {
  queueOf: (provider: ProviderId) => Queue<ChatJobPayload>;
  store: Pick<QueueStore, 'now' | 'records' | 'readJobs'>;
  pendingReplies: PendingReplies;
  /** Gets each job that a poll finds waiting in its queue, or at a worker. */
  stranded: Pick<StrandedJobs, 'passOn' | 'isPassingOn'>;
  log: Log;
}

/** How often the records of pending jobs are read, in case a message was lost. */
const pollIntervalMs = 1000;
/** The message for a wait that began less than this ago is most likely still to come. */
const messageDelayMs = 100;
/** Jobs read in one command, so that none holds up the store for more than a millisecond or two. */
const pollBatch = 250;

/** Reads the records of jobs, which are the truth about their outcomes; messages only make them known sooner. */
export class JobResults {
  readonly #deps: JobResultsDeps;
  readonly #lostJobs: LostJobs;
  readonly #stopping = new AbortController();

  constructor(deps: JobResultsDeps) {
    this.#deps = deps;
    const { store, pendingReplies, stranded, log } = deps;
    const isPassingOn = (jobId: string) => stranded.isPassingOn(jobId);
    this.#lostJobs = new LostJobs({ records: store.records, pendingReplies, isPassingOn, log });
  }

  /** Polls for everyone who waits, once a second and never two polls at once, until `stop`. */
  start(): void {
    void this.#pollUntilStopped();
  }

  stop(): void {
    this.#stopping.abort();
  }

  /**
   * What the records say of the attempt, or of one that follows; a job that broke or was given up has ended as `internal`. The end of a stored chat, once
   * read, stays the same until its records expire. Throws within three seconds when the store does not answer.
   */
  async read(job: PendingJob): Promise<JobResult> {
    const [result] = await this.#readBatch(job.provider, [job]);
    if (result?.status !== 'fulfilled') throw result?.reason;
    const next = result.value.state === 'settled' ? nextOf(result.value.outcome) : undefined;
    return next ? this.read({ ...job, ...next }) : result.value;
  }

  /** Settles those who wait for one of these jobs that has an outcome, and returns the jobs that the store does not know. */
  async poll(jobs: readonly PendingJob[]): Promise<PendingJob[]> {
    const byProvider = Map.groupBy(jobs, ({ provider }) => provider);
    const lost = await Promise.all(
      [...byProvider].map(([provider, own]) => this.#pollProvider(provider, own)),
    );
    return lost.flat();
  }

  async #pollUntilStopped(): Promise<void> {
    const { pendingReplies, store } = this.#deps;
    const { signal } = this.#stopping;
    for (let pollSlot = 0; !signal.aborted; pollSlot += 1) {
      await delay(pollIntervalMs, undefined, { signal, ref: false }).catch(() => undefined);
      if (signal.aborted) return;
      const askedAt = store.now();
      const due = pendingReplies.pending({ since: askedAt - messageDelayMs, pollSlot });
      await this.#lostJobs.report(await this.poll(due), askedAt);
    }
  }

  async #pollProvider(provider: ProviderId, jobs: readonly PendingJob[]): Promise<PendingJob[]> {
    const lost: PendingJob[] = [];
    for (let start = 0; start < jobs.length; start += pollBatch)
      lost.push(...(await this.#pollBatch(provider, jobs.slice(start, start + pollBatch))));
    return lost;
  }

  async #pollBatch(provider: ProviderId, jobs: readonly PendingJob[]): Promise<PendingJob[]> {
    const { pendingReplies, store, stranded, log } = this.#deps;
    const readAt = store.now();
    const results = await this.#readBatch(provider, jobs).catch((err) => {
      log.debug({ err, provider }, 'job records could not be read');
      return undefined;
    });
    if (results === undefined) return [];
    return jobs.filter((job, n) => {
      const { jobId } = job;
      const result = results[n];
      // A record that cannot be read says nothing about the others.
      if (result?.status !== 'fulfilled')
        log.debug({ err: result?.reason, jobId }, 'job record could not be read');
      else if (result.value.state === 'settled') pendingReplies.settle(jobId, result.value.outcome);
      else if (result.value.state === 'unknown') return true;
      else {
        pendingReplies.recordSeen(jobId, readAt);
        void stranded.passOn(job);
      }
      return false;
    });
  }

  #readBatch(provider: ProviderId, jobs: readonly PendingJob[]): Promise<PromiseSettledResult<JobResult>[]> {
    const source = { queue: this.#deps.queueOf(provider), store: this.#deps.store };
    return withTimeout(storeTimeoutMs, readRecords(jobs, source));
  }
}

interface Source {
  queue: Queue<ChatJobPayload>;
  store: JobResultsDeps['store'];
}

/**
 * What the records say of each of these jobs of one queue, in their order. The jobs are read before the outcomes: a stored chat
 * that was cancelled has an outcome before its job is removed, so a job that is missing has its outcome.
 */
async function readRecords(
  jobs: readonly PendingJob[],
  { queue, store }: Source,
): Promise<PromiseSettledResult<JobResult>[]> {
  const queued = await store.readJobs(
    queue,
    jobs.map(({ jobId, attempt }) => jobIdOf(jobId, attempt)),
  );
  const storedIds = jobs.filter(({ isStored }) => isStored).map(({ jobId }) => jobId);
  const texts = await store.records.readAll(storedIds.map(resultKey));
  const outcomes = new Map(storedIds.map((jobId, n) => [jobId, texts[n]]));
  return Promise.allSettled(
    jobs.map(async (job, n) => {
      const result = decodeResultRecord(outcomes.get(job.jobId));
      return result ?? toJobResult(job, queued[n] ?? { state: 'unreadable' }, { queue, store });
    }),
  );
}

async function toJobResult(
  { jobId, isStored, attempt }: PendingJob,
  job: StoredJob,
  { queue, store }: Source,
): Promise<JobResult> {
  if (job.state === 'unreadable') throw new Error('what is there is no job');
  if (job.state === 'queued') return attempt === undefined ? job : { ...job, wasTaken: true };
  if (job.state !== 'completed' && job.state !== 'failed') return { state: job.state };
  const outcome = job.state === 'failed' ? givenUpOutcome : decodeResult(job.returnValue);
  if (!isStored || nextOf(outcome)) return { state: 'settled', outcome };
  // Otherwise the guess of `decodeResult` would be recorded.
  if (job.state === 'completed') refuseNewer(job.returnValue);
  const expiresAt = (await Job.fromId<ChatJobPayload>(queue, jobIdOf(jobId, attempt)))?.data.keptUntil;
  if (expiresAt === undefined) return { state: 'settled', outcome };
  // Its worker could not record the outcome, and the job's own record expires in a minute.
  return recordResult(store, { jobId, outcome, settledAt: job.finishedOn, expiresAt });
}

function decodeResultRecord(text: string | undefined): JobResult | undefined {
  if (text === undefined) return undefined;
  refuseNewer(text);
  try {
    const { at, outcome } = decodeStoredResult(text);
    return { state: 'settled', outcome, settledAt: at };
  } catch {
    return { state: 'settled', outcome: brokenOutcome };
  }
}

interface SettledJob {
  readonly jobId: string;
  readonly outcome: Outcome;
  /** Milliseconds since the epoch, as is `expiresAt`. */
  readonly settledAt: number;
  readonly expiresAt: number;
}

/** Records how a stored chat ended, unless somebody did meanwhile, and returns the result that counts. */
async function recordResult(
  { now, records }: JobResultsDeps['store'],
  settled: SettledJob,
): Promise<JobResult> {
  const { jobId, outcome, settledAt, expiresAt } = settled;
  const result: JobResult = { state: 'settled', outcome, settledAt };
  const value = encodeStoredResult(outcome, settledAt);
  const ttlMs = Math.max(1, Math.ceil(expiresAt - now()));
  if (await records.create(resultKey(jobId), { value, ttlMs })) return result;
  return decodeResultRecord(await records.read(resultKey(jobId))) ?? result;
}

/** The outcome as a worker encoded it; one that cannot be read means that the job broke, or is worth another attempt. */
export function decodeResult(outcome: unknown): Outcome {
  try {
    return decodeOutcome(outcome);
  } catch {
    return isNewer(outcome) ? givenUpOutcome : brokenOutcome;
  }
}
