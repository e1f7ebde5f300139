import type { Processor, Queue, Relay, RelayOptions, Worker, WorkerOptions } from 'bullmq';
import { isCertificateError } from '../urls/store-certificates.js';

/**
 * Where the queue lives: Redis when `REDIS_URL` is set, else PostgreSQL. Only `queue-stores/` knows which; everyone else sees BullMQ's classes, ready to use, and one `QueueStore`.
 */
export interface QueueStore {
  readonly kind: 'redis' | 'postgres';
  /** What has to outlive processes and jobs, beside the queue. */
  readonly records: RecordStore;
  /**
   * The store's time, in milliseconds since the epoch: deadlines and ages are by it, for the clocks of two machines differ. It
   * never jumps when this machine's clock does; before the first `check` that is all there is.
   */
  now(): number;
  /** Resolves when the store can be used; throws what is wrong otherwise. Answers within three seconds. */
  check(): Promise<void>;
  /** Resolves with true at the first successful `check`, with false when the signal aborts before. */
  whenReady(signal: AbortSignal): Promise<boolean>;
  /** For adding jobs and reading their records; its commands fail fast while the store is down. */
  createQueue(name: string): Queue;
  /** For running jobs; rides out an outage of the store. */
  createWorker(name: string, processor: Processor, options: WorkerTuning): Worker;
  /** For telling between processes; see `relay.ts`. */
  createRelay(options: RelayTuning): Relay;
  /**
   * What the store knows of these jobs of the queue, in their order and without what they were given; the cost is that of
   * these jobs alone, however many others there are. Some hundreds at once at most.
   */
  readJobs(queue: Queue, jobIds: readonly string[]): Promise<StoredJob[]>;
  /** How much there is to do, in one short look; throws while the store cannot be reached. */
  measure(queue: Queue): Promise<QueueDepth>;
  /** Removes all events of the queue: BullMQ writes every answer into one, for readers that there are not. */
  forgetEvents(queue: Queue): Promise<void>;
  close(): Promise<void>;
}

/** What the store knows of one job. `unreadable`: something is there that says nothing of it; the others are not affected. */
export type StoredJob =
  | { readonly state: 'unknown' | 'queued' | 'running' | 'unreadable' }
  /** It broke or was given up; `finishedOn` is in milliseconds since the epoch. */
  | { readonly state: 'failed'; readonly finishedOn: number }
  | { readonly state: 'completed'; readonly finishedOn: number; readonly returnValue: unknown };

/** The jobs of one queue that have not ended. */
export interface QueueDepth {
  /** Not taken by a worker yet, with or without a priority. */
  readonly waiting: number;
  readonly active: number;
  /** When the oldest waiting job was added, in milliseconds since the epoch. */
  readonly oldestAddedAt: number | undefined;
}

/**
 * Small texts by key, each with an end of its own; the first writer of a key wins. Calls fail within three seconds while
 * the store is down. A text is well-formed and without U+0000, as JSON text always is; `ttlMs` is a whole number above 0.
 */
export interface RecordStore {
  read(key: string): Promise<string | undefined>;
  /** The same for some hundreds of keys at most, in their order. */
  readAll(keys: readonly string[]): Promise<(string | undefined)[]>;
  /** False when the key is taken. */
  create(key: string, record: { value: string; ttlMs: number }): Promise<boolean>;
  /** False unless what is there is `expected`. */
  replace(key: string, record: { expected: string; value: string; ttlMs: number }): Promise<boolean>;
  /** Removes what has ended (nothing to do in Redis). */
  removeEnded(): Promise<void>;
}

/** What a kind of store brings; the rest is the same for all. */
export interface StoreParts extends Omit<QueueStore, 'check' | 'whenReady' | 'now'> {
  /** What is wrong and waiting does not mend, in words that are safe to show; throws while the store cannot be reached. */
  findDefect(): Promise<string | undefined>;
}

/** Thrown by a processor whose job has gone back to the queue: nothing more is stored of it. */
export { WaitingError as HandedBack } from 'bullmq';

export type WorkerTuning = Omit<WorkerOptions, 'connection'>;
export type RelayTuning = Omit<RelayOptions, 'connection' | 'backend'>;

/** A defect of the store that waiting does not mend; its message is safe to show. */
export class Misconfiguration extends Error {
  override readonly name = 'Misconfiguration';
}

/** What is wrong with a store, in words that are safe to show: other messages can hold its address and password. */
export function reasonOf(error: unknown): string {
  if (error instanceof Misconfiguration) return error.message;
  const code = error instanceof Error && 'code' in error ? String(error.code) : undefined;
  if (code === undefined) return 'the store cannot be reached';
  const trouble = isCertificateError(code) ? 'shows a certificate that is not trusted' : 'cannot be reached';
  return `the store ${trouble} (${code})`;
}
