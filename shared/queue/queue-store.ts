import type { Processor, Queue, Relay, RelayOptions, Worker, WorkerOptions } from 'bullmq';
import type { Log } from '../runtime/log.js';
import { type RetryOptions, retry } from '../runtime/retry.js';
import { isCertificateError } from '../urls/store-url-parts.js';
import type { BlobStore } from './blobs.js';

/** The store of the queue, in Redis or PostgreSQL. Only `stores/` knows which; others use it and BullMQ's classes. */
export interface QueueStore {
  readonly kind: 'redis' | 'postgres';
  /** Records that outlive processes and jobs. */
  readonly records: RecordStore;
  readonly blobs: BlobStore;
  /** Entries of the ledger, until they are in its tables. */
  readonly outbox: Outbox;
  /** The store's time, in milliseconds since the epoch; before the first `check` that of this machine. */
  now(): number;
  /** Resolves when the store can be used; throws the reason otherwise. Settles within three seconds. */
  check(): Promise<void>;
  /** Resolves with true at the first successful `check`, with false when the signal aborts before. */
  whenReady(signal: AbortSignal): Promise<boolean>;
  /** For adding and reading jobs; its commands fail fast while the store is down. */
  createQueue(name: string): Queue;
  /** For running jobs; waits through an outage of the store. */
  createWorker(name: string, processor: Processor, options: WorkerTuning): Worker;
  /** For messages between processes; see `relay.ts`. */
  createRelay(options: RelayTuning): Relay;
  /** The shorter way for messages to one process; undefined where the store has none that counts who is there. */
  createPubSub(): PubSub | undefined;
  /** Reads the states of these jobs, some hundreds at most, in order. The cost does not depend on other jobs. */
  readJobs(queue: Queue, jobIds: readonly string[]): Promise<StoredJob[]>;
  /** Reads the times of these jobs, as far as they exist, in order and without texts. At most some hundreds. */
  readTimes(queue: Queue, jobIds: readonly string[]): Promise<JobTimes[]>;
  /** Ids of the jobs that run next, in their order, so many at most. */
  nextIds(queue: Queue, limit: number): Promise<string[]>;
  /** Counts the runs of these jobs that were lost, of those jobs that exist, in order. At most some hundreds. */
  lostRuns(queue: Queue, jobIds: readonly string[]): Promise<LostRuns[]>;
  /** The same for those of the jobs that BullMQ's `clean` removes next that have lost any. */
  lostRunsOfOldest(queue: Queue, asked: OldestJobs): Promise<LostRuns[]>;
  /** Counts the jobs in one short command; throws while the store is unreachable. */
  measure(queue: Queue): Promise<QueueDepth>;
  /** Wakes idle workers, so that they fetch at once: limits of the queue may have been lifted. */
  wake(queue: Queue): Promise<void>;
  /** Removes all events of the queue: BullMQ writes every result into one, and nothing reads them. */
  forgetEvents(queue: Queue): Promise<void>;
  close(): Promise<void>;
}

/** Messages to the current subscribers; they are not kept for others. */
export interface PubSub {
  /** Resolves with the number of subscribers that the message was sent to; with 0 as well when it was refused. */
  publish(topic: string, message: string): Promise<number>;
  /** Resolves once subscribed, with false if that was refused. There is one listener to a topic. */
  subscribe(topic: string, listener: (message: string) => void): Promise<boolean>;
  close(): void;
}

/** The state of one job. `unreadable`: its record cannot be read; the other jobs are not affected. */
export type StoredJob =
  | { readonly state: 'unknown' | 'running' | 'unreadable' }
  /** `wasTaken`: a worker has taken it before; it handed the job back or has lost it. */
  | { readonly state: 'queued'; readonly wasTaken?: true }
  /** It failed or was given up; `finishedOn` is in milliseconds since the epoch. */
  | { readonly state: 'failed'; readonly finishedOn: number }
  | { readonly state: 'completed'; readonly finishedOn: number; readonly returnValue: unknown };

/** When a job was added, taken and ended, in milliseconds since the epoch; null if it was not. */
export interface JobTimes {
  readonly id: string;
  /** See `encodeOrigin`. */
  readonly name: string;
  readonly addedAt: number;
  /** When a worker took it last. */
  readonly startedAt: number | null;
  readonly endedAt: number | null;
  /** How often a worker has taken it. */
  readonly attempts: number;
}

/** States of jobs as BullMQ's `clean` names them. */
export type UnfinishedState = 'wait' | 'prioritized' | 'delayed' | 'active';

export interface OldestJobs {
  readonly state: UnfinishedState;
  /** In milliseconds since the epoch. */
  readonly addedBefore: number;
  readonly limit: number;
}

/** The runs of a job that ended without a word: its worker died, or lost its lock. */
export interface LostRuns {
  readonly id: string;
  /** See `encodeOrigin`. */
  readonly name: string;
  /** When it was added, in milliseconds since the epoch. */
  readonly addedAt: number;
  /** How often it stalled, and once more while it is active without a lock. */
  readonly lost: number;
}

/** Texts in the order in which they came, flushed to the disk where the store can. Calls fail within three seconds. */
export interface Outbox {
  /** Throws `OutboxFull` when there would be more than `maxOutboxEntries`; appends all or none. */
  append(entries: readonly string[]): Promise<void>;
  /** The first ones behind the one with this id, or of all. */
  read(options: { limit: number; after?: string | undefined }): Promise<OutboxEntry[]>;
  remove(ids: readonly string[]): Promise<void>;
  /** How many there are, and when the first came, in milliseconds since the epoch. */
  size(): Promise<{ readonly entries: number; readonly oldestAt: number | undefined }>;
}

export interface OutboxEntry {
  readonly id: string;
  readonly entry: string;
}

export const maxOutboxEntries = 100_000;

/** Thrown by an outbox that takes no more until it is read. */
export class OutboxFull extends Error {
  override readonly name = 'OutboxFull';
}

/** The unfinished jobs of one queue. */
export interface QueueDepth {
  /** With or without a priority. */
  readonly waiting: number;
  readonly active: number;
  /** When the oldest waiting job was added, in milliseconds since the epoch. */
  readonly oldestAddedAt: number | undefined;
}

/** A text is well-formed and without U+0000, as JSON always is. */
interface NewRecord {
  value: string;
  /** A whole number above 0; absent means that the record has no end. */
  ttlMs?: number;
}

/** Small texts by key; the first writer of a key wins. Calls fail within three seconds while the store is down. */
export interface RecordStore {
  read(key: string): Promise<string | undefined>;
  /** The same for at most some hundreds of keys, in their order. */
  readAll(keys: readonly string[]): Promise<(string | undefined)[]>;
  /** False when the key is taken. */
  create(key: string, record: NewRecord): Promise<boolean>;
  /** False unless the stored value is `expected`. */
  replace(key: string, record: NewRecord & { expected: string }): Promise<boolean>;
  /** Removes expired records (nothing to do in Redis). */
  removeEnded(): Promise<void>;
}

/** The part of a store that differs by its kind. */
export interface StoreParts extends Omit<QueueStore, 'check' | 'whenReady' | 'now'> {
  /** Describes a misconfiguration, in words that are safe to show; throws while the store is unreachable. */
  findDefect(): Promise<string | undefined>;
}

/** Thrown by a processor that has put its job back into the queue: no result is stored. */
export { WaitingError as HandedBack } from 'bullmq';

export type WorkerTuning = Omit<WorkerOptions, 'connection'>;
export type RelayTuning = Omit<RelayOptions, 'connection' | 'backend'>;

/** A defect of the store that does not pass by itself; its message is safe to show. */
export class Misconfiguration extends Error {
  override readonly name = 'Misconfiguration';
}

/** Describes an error of a store in safe words: its own message can contain the address and password. */
export function reasonOf(error: unknown): string {
  if (error instanceof Misconfiguration) return error.message;
  const code = error instanceof Error && 'code' in error ? String(error.code) : undefined;
  if (code === undefined) return 'the store cannot be reached';
  const problem = isCertificateError(code) ? 'shows a certificate that is not trusted' : 'cannot be reached';
  return `the store ${problem} (${code})`;
}

interface ReadinessDeps extends Pick<RetryOptions, 'maxPauseMs' | 'maxTries'> {
  /** The first pause between two tries, in milliseconds. */
  pauseMs?: number;
  store: Pick<QueueStore, 'whenReady'>;
  /** Ends the waiting and the retrying. */
  signal: AbortSignal;
  log: Log;
}

const defaultPauseMs = 250;

/**
 * Does what needs the store once that is ready, and again when it fails: a store can become unavailable meanwhile, or
 * answer and still refuse. Logs each reason once. Throws the last error of the work, or the signal's reason when that
 * aborts before the first try.
 */
export function whenReady<T>(
  work: () => Promise<T>,
  { store, log, ...options }: ReadinessDeps,
): Promise<Awaited<T>> {
  const logged = new Set<string>();
  let lastError: unknown;
  const workOnReadyStore = async () => {
    if (!(await store.whenReady(options.signal))) throw lastError ?? options.signal.reason;
    return work();
  };
  const onFailure = (error: unknown) => {
    lastError = error;
    if (!logged.has(String(error))) log.warn({ err: error }, 'the queue store refused, trying again');
    logged.add(String(error));
  };
  return retry(workOnReadyStore, { pauseMs: defaultPauseMs, ...options, onFailure });
}
