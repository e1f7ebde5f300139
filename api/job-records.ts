import { setTimeout as delay } from 'node:timers/promises';
import { Job, type Queue } from 'bullmq';
import type { ProviderId } from '../shared/contract.js';
import { decodeKeptOutcome, encodeKeptOutcome, outcomeKey } from '../shared/kept-chat.js';
import type { Log } from '../shared/log.js';
import type { ChatJobPayload } from '../shared/messages.js';
import { brokenOutcome, decodeOutcome, givenUpOutcome, type Outcome } from '../shared/outcome.js';
import type { RecordStore } from '../shared/queue-store.js';
import { isNewer } from '../shared/versions.js';
import { within } from '../shared/within.js';
import { refuseNewer } from './newer-record.js';
import type { AwaitedJob, WaitingRoom } from './waiting-room.js';

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
  records: RecordStore;
  waitingRoom: WaitingRoom;
  log: Log;
}

/** The records of those who wait are looked at this often, in case a telling was lost: those of the patient by turns. */
const lookIntervalMs = 1000;
/** Who waits since less than this is most likely still to be told. */
const tellingMs = 100;
/** Records asked for at once. */
const lookBatch = 100;
/** A store that has not said it all by then counts as down. */
const readTimeoutMs = 2500;

/** Looks once a second, and not again before the last look has ended. */
export function watchJobRecords({ queueOf, records, waitingRoom, log }: RecordsDeps): JobRecords {
  const stopping = new AbortController();
  const { signal } = stopping;
  const readAll = async (job: AwaitedJob): Promise<JobRecord> => {
    // A kept chat that was cancelled has an outcome although its job has none.
    const kept = job.isKept ? await readKeptOutcome(records, job.jobId) : undefined;
    if (kept) return kept;
    const { keptUntil, ...record } = await readJob(queueOf(job.provider), job.jobId);
    if (record.state !== 'settled' || keptUntil === undefined) return record;
    // Its worker could not record it, and the job's own record is gone in a minute.
    return recordOutcome(records, { ...record, jobId: job.jobId, keptUntil });
  };
  const read = (job: AwaitedJob) => within(readTimeoutMs, readAll(job));
  const look = async (jobs: AwaitedJob[]) => {
    const unknown: AwaitedJob[] = [];
    const lookAt = async (job: AwaitedJob) => {
      const askedAt = Date.now();
      const record = await read(job);
      if (record.state === 'settled') waitingRoom.settle(job.jobId, record.outcome);
      else if (record.state === 'unknown') unknown.push(job);
      else waitingRoom.seen(job.jobId, askedAt);
    };
    // One that cannot be read says nothing of the others.
    const tryToLookAt = (job: AwaitedJob) =>
      lookAt(job).catch((err) => log.debug({ err, jobId: job.jobId }, 'record could not be read'));
    for (let start = 0; start < jobs.length; start += lookBatch)
      await Promise.all(jobs.slice(start, start + lookBatch).map(tryToLookAt));
    return unknown;
  };
  const watch = async () => {
    for (let turn = 0; !signal.aborted; turn += 1) {
      await delay(lookIntervalMs, undefined, { signal, ref: false }).catch(() => undefined);
      if (signal.aborted) return;
      const unknown = await look(waitingRoom.waiting({ since: Date.now() - tellingMs, turn }));
      for (const { jobId } of unknown)
        if (waitingRoom.vanished(jobId)) log.warn({ jobId }, 'job has vanished and is put back');
    }
  };
  void watch();
  return { read, look, stop: () => stopping.abort() };
}

async function readKeptOutcome(records: RecordStore, jobId: string): Promise<JobRecord | undefined> {
  const text = await records.read(outcomeKey(jobId));
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
  readonly settledAt?: number;
  readonly keptUntil: number;
}

/** Writes down how a kept chat ended, unless somebody has meanwhile, and gives what counts. */
async function recordOutcome(records: RecordStore, ended: Ended): Promise<JobRecord> {
  const { jobId, outcome, settledAt = Date.now(), keptUntil } = ended;
  const value = encodeKeptOutcome(outcome, settledAt);
  const ttlMs = Math.max(1, Math.ceil(keptUntil - Date.now()));
  if (await records.create(outcomeKey(jobId), { value, ttlMs }))
    return { state: 'settled', outcome, settledAt };
  return (await readKeptOutcome(records, jobId)) ?? { state: 'settled', outcome, settledAt };
}

/** `keptUntil` is there when the job has ended and was a kept chat's. */
async function readJob(
  queue: Queue<ChatJobPayload>,
  jobId: string,
): Promise<JobRecord & { keptUntil?: number | undefined }> {
  const state = await queue.getJobState(jobId);
  if (state === 'unknown') return { state };
  if (state === 'active') return { state: 'running' };
  if (state !== 'completed' && state !== 'failed') return { state: 'queued' };
  const job = await Job.fromId<ChatJobPayload>(queue, jobId);
  if (job === undefined) return { state: 'unknown' };
  const outcome = state === 'failed' ? givenUpOutcome : readable(job.returnvalue);
  const { keptUntil } = job.data;
  // It would be recorded.
  if (keptUntil !== undefined) refuseNewer(job.returnvalue);
  if (keptUntil === undefined) return { state: 'settled', outcome };
  return { state: 'settled', outcome, keptUntil, ...(job.finishedOn && { settledAt: job.finishedOn }) };
}

/** The outcome as a worker wrote it down; one that cannot be read is a job that broke, or is worth another attempt. */
export function readable(outcome: unknown): Outcome {
  try {
    return decodeOutcome(outcome);
  } catch {
    return isNewer(outcome) ? givenUpOutcome : brokenOutcome;
  }
}
