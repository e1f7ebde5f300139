import { setTimeout as delay } from 'node:timers/promises';
import { Job, type Queue } from 'bullmq';
import type { ProviderId } from '../../../shared/contract.js';
import type { ChatJobPayload } from '../../../shared/protocol/messages.js';
import {
  brokenOutcome,
  decodeOutcome,
  givenUpOutcome,
  type Outcome,
} from '../../../shared/protocol/outcome.js';
import { decodeStoredResult, encodeStoredResult, resultKey } from '../../../shared/protocol/stored-chat.js';
import { isNewer } from '../../../shared/protocol/version.js';
import type { QueueStore, StoredJob } from '../../../shared/queue/queue-store.js';
import type { Log } from '../../../shared/runtime/log.js';
import { withTimeout } from '../../../shared/runtime/with-timeout.js';
import type { PendingJob, PendingReplies } from './pending-replies.js';
import { refuseNewer } from './version-guard.js';

/** What the records say of a job: `unknown` when there is none, for it was never added or is gone. */
export type JobResult =
  | { readonly state: 'queued' | 'running' | 'unknown' }
  | { readonly state: 'settled'; readonly outcome: Outcome; readonly settledAt?: number };

/** The jobs' records, which are the truth about their outcomes, looked at for everyone who waits. */
export interface JobResults {
  /**
   * What the records say of one job; a job that broke or was given up has ended as `internal`. What it says of the end of a
   * stored chat stays so until the chat's records end. Throws within three seconds when the store does not answer.
   */
  read(job: PendingJob): Promise<JobResult>;
  /** Settles the waiters of those of these jobs that have an outcome, and gives those that the store does not know. */
  look(jobs: PendingJob[]): Promise<PendingJob[]>;
  /** Looks no more. */
  stop(): void;
}

interface RecordsDeps {
  queueOf: (provider: ProviderId) => Queue<ChatJobPayload>;
  store: Pick<QueueStore, 'now' | 'records' | 'readJobs'>;
  pendingReplies: PendingReplies;
  log: Log;
}

/** The records of those who wait are looked at this often, in case a telling was lost: those of the patient by turns. */
const pollIntervalMs = 1000;
/** Who waits since less than this is most likely still to be told. */
const messageDelayMs = 100;
/** Jobs asked for in one command, so that none holds the store up for more than a millisecond or two. */
const pollBatch = 250;
/** A store that has not said it all by then counts as down. */
const readTimeoutMs = 2500;

/** Looks once a second, and not again before the last look has ended. */
export function watchJobResults({ queueOf, store, pendingReplies, log }: RecordsDeps): JobResults {
  const stopping = new AbortController();
  const { signal } = stopping;
  const readBatch = (provider: ProviderId, jobs: readonly PendingJob[]) =>
    withTimeout(readTimeoutMs, readRecords(jobs, { queue: queueOf(provider), store }));
  const read = async (job: PendingJob) => {
    const [record] = await readBatch(job.provider, [job]);
    if (record?.status === 'fulfilled') return record.value;
    throw record?.reason;
  };
  /** Gives those that the store does not know. */
  const pollBatchOf = async (provider: ProviderId, jobs: readonly PendingJob[]) => {
    const askedAt = store.now();
    const records = await readBatch(provider, jobs);
    return jobs.filter((job, n) => {
      const record = records[n];
      // One that cannot be read says nothing of the others.
      if (record?.status !== 'fulfilled')
        log.debug({ err: record?.reason, jobId: job.jobId }, 'record could not be read');
      else if (record.value.state === 'settled') pendingReplies.settle(job.jobId, record.value.outcome);
      else if (record.value.state === 'unknown') return true;
      else pendingReplies.seen(job.jobId, askedAt);
      return false;
    });
  };
  const pollProvider = async (provider: ProviderId, jobs: readonly PendingJob[]) => {
    const unknown: PendingJob[] = [];
    for (let start = 0; start < jobs.length; start += pollBatch) {
      const looking = pollBatchOf(provider, jobs.slice(start, start + pollBatch));
      unknown.push(...(await looking.catch((err) => logUnread(err, provider))));
    }
    return unknown;
  };
  const logUnread = (err: unknown, provider: ProviderId): PendingJob[] => {
    log.debug({ err, provider }, 'records could not be read');
    return [];
  };
  const look = async (jobs: PendingJob[]) => {
    const byProvider = [...Map.groupBy(jobs, ({ provider }) => provider)];
    const unknown = await Promise.all(byProvider.map(([provider, its]) => pollProvider(provider, its)));
    return unknown.flat();
  };
  const watch = async () => {
    for (let turn = 0; !signal.aborted; turn += 1) {
      await delay(pollIntervalMs, undefined, { signal, ref: false }).catch(() => undefined);
      if (signal.aborted) return;
      const unknown = await look(pendingReplies.waiting({ since: store.now() - messageDelayMs, turn }));
      for (const { jobId } of unknown)
        if (pendingReplies.vanished(jobId)) log.warn({ jobId }, 'job has vanished and is put back');
    }
  };
  void watch();
  return { read, look, stop: () => stopping.abort() };
}

interface Source {
  queue: Queue<ChatJobPayload>;
  store: RecordsDeps['store'];
}

/**
 * What the records say of each of these jobs of a queue, in their order. The jobs come first: a stored chat that was cancelled
 * has an outcome before its job is removed, so one that is not there has its outcome.
 */
async function readRecords(
  jobs: readonly PendingJob[],
  { queue, store }: Source,
): Promise<PromiseSettledResult<JobResult>[]> {
  const stored = await store.readJobs(
    queue,
    jobs.map(({ jobId }) => jobId),
  );
  const kept = jobs.filter(({ isStored }) => isStored).map(({ jobId }) => jobId);
  const texts = await store.records.readAll(kept.map(resultKey));
  const outcomes = new Map(kept.map((jobId, n) => [jobId, texts[n]]));
  return Promise.allSettled(
    jobs.map(async (job, n) => {
      const outcome = decodeOutcomeRecord(outcomes.get(job.jobId));
      return outcome ?? toJobResult(job, stored[n] ?? { state: 'unreadable' }, { queue, store });
    }),
  );
}

async function toJobResult(
  { jobId, isStored }: PendingJob,
  stored: StoredJob,
  source: Source,
): Promise<JobResult> {
  if (stored.state === 'unreadable') throw new Error('what is there is no job');
  if (stored.state !== 'completed' && stored.state !== 'failed') return { state: stored.state };
  const outcome = stored.state === 'failed' ? givenUpOutcome : readable(stored.returnValue);
  if (!isStored) return { state: 'settled', outcome };
  // It would be recorded.
  if (stored.state === 'completed') refuseNewer(stored.returnValue);
  const job = await Job.fromId<ChatJobPayload>(source.queue, jobId);
  if (job?.data.keptUntil === undefined) return { state: 'settled', outcome };
  // Its worker could not record it, and the job's own record is gone in a minute.
  const ended = { jobId, outcome, settledAt: stored.finishedOn, keptUntil: job.data.keptUntil };
  return recordOutcome(source.store, ended);
}

/** Undefined where there is none. */
function decodeOutcomeRecord(text: string | undefined): JobResult | undefined {
  if (text === undefined) return undefined;
  refuseNewer(text);
  try {
    const { at, outcome } = decodeStoredResult(text);
    return { state: 'settled', outcome, settledAt: at };
  } catch {
    return { state: 'settled', outcome: brokenOutcome };
  }
}

interface Ended {
  readonly jobId: string;
  readonly outcome: Outcome;
  readonly settledAt: number;
  readonly keptUntil: number;
}

/** Writes down how a stored chat ended, unless somebody has meanwhile, and gives what counts. */
async function recordOutcome({ now, records }: RecordsDeps['store'], ended: Ended): Promise<JobResult> {
  const { jobId, outcome, settledAt, keptUntil } = ended;
  const value = encodeStoredResult(outcome, settledAt);
  const ttlMs = Math.max(1, Math.ceil(keptUntil - now()));
  if (await records.create(resultKey(jobId), { value, ttlMs }))
    return { state: 'settled', outcome, settledAt };
  return (
    decodeOutcomeRecord(await records.read(resultKey(jobId))) ?? { state: 'settled', outcome, settledAt }
  );
}

/** The outcome as a worker wrote it down; one that cannot be read is a job that broke, or is worth another attempt. */
export function readable(outcome: unknown): Outcome {
  try {
    return decodeOutcome(outcome);
  } catch {
    return isNewer(outcome) ? givenUpOutcome : brokenOutcome;
  }
}
