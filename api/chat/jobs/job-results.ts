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
import { decodeKeptOutcome, encodeKeptOutcome, outcomeKey } from '../../../shared/protocol/stored-chat.js';
import { isNewer } from '../../../shared/protocol/version.js';
import type { QueueStore, StoredJob } from '../../../shared/queue/queue-store.js';
import type { Log } from '../../../shared/runtime/log.js';
import { within } from '../../../shared/runtime/with-timeout.js';
import type { AwaitedJob, WaitingRoom } from './pending-replies.js';
import { refuseNewer } from './version-guard.js';

/** What the records say of a job: `unknown` when there is none, for it was never added or is gone. */
export type JobRecord =
  | { readonly state: 'queued' | 'running' | 'unknown' }
  | { readonly state: 'settled'; readonly outcome: Outcome; readonly settledAt?: number };

/** The jobs' records, which are the truth about their outcomes, looked at for everyone who waits. */
export interface JobRecords {
  /**
   * What the records say of one job; a job that broke or was given up has ended as `internal`. What it says of the end of a
   * kept chat stays so until the chat's records end. Throws within three seconds when the store does not answer.
   */
  read(job: AwaitedJob): Promise<JobRecord>;
  /** Settles the waiters of those of these jobs that have an outcome, and gives those that the store does not know. */
  look(jobs: AwaitedJob[]): Promise<AwaitedJob[]>;
  /** Looks no more. */
  stop(): void;
}

interface RecordsDeps {
  queueOf: (provider: ProviderId) => Queue<ChatJobPayload>;
  store: Pick<QueueStore, 'now' | 'records' | 'readJobs'>;
  waitingRoom: WaitingRoom;
  log: Log;
}

/** The records of those who wait are looked at this often, in case a telling was lost: those of the patient by turns. */
const lookIntervalMs = 1000;
/** Who waits since less than this is most likely still to be told. */
const tellingMs = 100;
/** Jobs asked for in one command, so that none holds the store up for more than a millisecond or two. */
const lookBatch = 250;
/** A store that has not said it all by then counts as down. */
const readTimeoutMs = 2500;

/** Looks once a second, and not again before the last look has ended. */
export function watchJobRecords({ queueOf, store, waitingRoom, log }: RecordsDeps): JobRecords {
  const stopping = new AbortController();
  const { signal } = stopping;
  const readBatch = (provider: ProviderId, jobs: readonly AwaitedJob[]) =>
    within(readTimeoutMs, readRecords(jobs, { queue: queueOf(provider), store }));
  const read = async (job: AwaitedJob) => {
    const [record] = await readBatch(job.provider, [job]);
    if (record?.status === 'fulfilled') return record.value;
    throw record?.reason;
  };
  /** Gives those that the store does not know. */
  const lookAtBatch = async (provider: ProviderId, jobs: readonly AwaitedJob[]) => {
    const askedAt = store.now();
    const records = await readBatch(provider, jobs);
    return jobs.filter((job, n) => {
      const record = records[n];
      // One that cannot be read says nothing of the others.
      if (record?.status !== 'fulfilled')
        log.debug({ err: record?.reason, jobId: job.jobId }, 'record could not be read');
      else if (record.value.state === 'settled') waitingRoom.settle(job.jobId, record.value.outcome);
      else if (record.value.state === 'unknown') return true;
      else waitingRoom.seen(job.jobId, askedAt);
      return false;
    });
  };
  const lookAtAll = async (provider: ProviderId, jobs: readonly AwaitedJob[]) => {
    const unknown: AwaitedJob[] = [];
    for (let start = 0; start < jobs.length; start += lookBatch) {
      const looking = lookAtBatch(provider, jobs.slice(start, start + lookBatch));
      unknown.push(...(await looking.catch((err) => noteUnread(err, provider))));
    }
    return unknown;
  };
  const noteUnread = (err: unknown, provider: ProviderId): AwaitedJob[] => {
    log.debug({ err, provider }, 'records could not be read');
    return [];
  };
  const look = async (jobs: AwaitedJob[]) => {
    const byProvider = [...Map.groupBy(jobs, ({ provider }) => provider)];
    const unknown = await Promise.all(byProvider.map(([provider, its]) => lookAtAll(provider, its)));
    return unknown.flat();
  };
  const watch = async () => {
    for (let turn = 0; !signal.aborted; turn += 1) {
      await delay(lookIntervalMs, undefined, { signal, ref: false }).catch(() => undefined);
      if (signal.aborted) return;
      const unknown = await look(waitingRoom.waiting({ since: store.now() - tellingMs, turn }));
      for (const { jobId } of unknown)
        if (waitingRoom.vanished(jobId)) log.warn({ jobId }, 'job has vanished and is put back');
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
 * What the records say of each of these jobs of a queue, in their order. The jobs come first: a kept chat that was cancelled
 * has an outcome before its job is removed, so one that is not there has its outcome.
 */
async function readRecords(
  jobs: readonly AwaitedJob[],
  { queue, store }: Source,
): Promise<PromiseSettledResult<JobRecord>[]> {
  const stored = await store.readJobs(
    queue,
    jobs.map(({ jobId }) => jobId),
  );
  const kept = jobs.filter(({ isKept }) => isKept).map(({ jobId }) => jobId);
  const texts = await store.records.readAll(kept.map(outcomeKey));
  const outcomes = new Map(kept.map((jobId, n) => [jobId, texts[n]]));
  return Promise.allSettled(
    jobs.map(async (job, n) => {
      const outcome = decodeOutcomeRecord(outcomes.get(job.jobId));
      return outcome ?? toJobRecord(job, stored[n] ?? { state: 'unreadable' }, { queue, store });
    }),
  );
}

async function toJobRecord(
  { jobId, isKept }: AwaitedJob,
  stored: StoredJob,
  source: Source,
): Promise<JobRecord> {
  if (stored.state === 'unreadable') throw new Error('what is there is no job');
  if (stored.state !== 'completed' && stored.state !== 'failed') return { state: stored.state };
  const outcome = stored.state === 'failed' ? givenUpOutcome : readable(stored.returnValue);
  if (!isKept) return { state: 'settled', outcome };
  // It would be recorded.
  if (stored.state === 'completed') refuseNewer(stored.returnValue);
  const job = await Job.fromId<ChatJobPayload>(source.queue, jobId);
  if (job?.data.keptUntil === undefined) return { state: 'settled', outcome };
  // Its worker could not record it, and the job's own record is gone in a minute.
  const ended = { jobId, outcome, settledAt: stored.finishedOn, keptUntil: job.data.keptUntil };
  return recordOutcome(source.store, ended);
}

/** Undefined where there is none. */
function decodeOutcomeRecord(text: string | undefined): JobRecord | undefined {
  if (text === undefined) return undefined;
  refuseNewer(text);
  try {
    const { at, outcome } = decodeKeptOutcome(text);
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

/** Writes down how a kept chat ended, unless somebody has meanwhile, and gives what counts. */
async function recordOutcome({ now, records }: RecordsDeps['store'], ended: Ended): Promise<JobRecord> {
  const { jobId, outcome, settledAt, keptUntil } = ended;
  const value = encodeKeptOutcome(outcome, settledAt);
  const ttlMs = Math.max(1, Math.ceil(keptUntil - now()));
  if (await records.create(outcomeKey(jobId), { value, ttlMs }))
    return { state: 'settled', outcome, settledAt };
  return (
    decodeOutcomeRecord(await records.read(outcomeKey(jobId))) ?? { state: 'settled', outcome, settledAt }
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
