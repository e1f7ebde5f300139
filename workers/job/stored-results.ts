import { Failure } from '../../shared/failures.js';
import { brokenOutcome, type Outcome } from '../../shared/protocol/outcome.js';
import {
  decodeStoredResult,
  encodeStoredResult,
  resultKey,
  resultTimeoutMs,
} from '../../shared/protocol/stored-chat.js';
import type { RecordStore } from '../../shared/queue/queue-store.js';
import type { Log } from '../../shared/runtime/log.js';
import { retry } from '../../shared/runtime/retry.js';
import { Cancelled } from '../gate/ends.js';
import type { RunningJob } from './running-job.js';

interface StoredResultsDeps {
  records: Pick<RecordStore, 'create' | 'read'>;
  log: Log;
  /** The clock of the deadlines, in milliseconds since the epoch. */
  now: () => number;
  /** How long to retry while the store is unavailable, in milliseconds. */
  timeoutMs?: number;
}

const pauseMs = 250;

/** A job whose outcome is recorded, if it is of a stored chat. */
type StoredJob = Pick<RunningJob, 'chatId' | 'facts' | 'signal'>;

/**
 * The results of stored chats in the queue store: a chat's first recorded outcome counts, and every process goes by
 * it. Both operations throw the reason of the job's signal when the job is no longer this worker's, and nothing else.
 */
export class StoredResults {
  constructor(private readonly deps: StoredResultsDeps) {}

  /** The recorded outcome; undefined without one, or when the store has not answered in time or by `deadline`. */
  async find(job: StoredJob, deadline: number): Promise<Outcome | undefined> {
    if (job.facts.keptUntil === undefined) return undefined;
    return this.#retry(() => this.#read(job), job, deadline - this.deps.now());
  }

  /** Records the outcome and returns the one that counts: this, or another that was recorded before. */
  async record(job: StoredJob, outcome: Outcome): Promise<Outcome> {
    const { keptUntil } = job.facts;
    if (keptUntil === undefined) return outcome;
    const { records, now } = this.deps;
    const value = encodeStoredResult(outcome, now());
    const write = async () => {
      const ttlMs = Math.max(1, Math.ceil(keptUntil - now()));
      return (await records.create(resultKey(job.chatId), { value, ttlMs })) ? outcome : this.#read(job);
    };
    return (await this.#retry(write, job, Number.POSITIVE_INFINITY)) ?? outcome;
  }

  async #read({ chatId }: StoredJob): Promise<Outcome | undefined> {
    const { records, log } = this.deps;
    const text = await records.read(resultKey(chatId));
    if (text === undefined) return undefined;
    try {
      return decodeStoredResult(text).outcome;
    } catch {
      // The chat has ended, though a newer release wrote how.
      log.warn({ jobId: chatId }, 'stored result unreadable');
      return brokenOutcome;
    }
  }

  /** Retries while the store is unavailable, until the job is aborted; undefined if it has not answered by then. */
  async #retry(work: () => Promise<Outcome | undefined>, { chatId, signal }: StoredJob, leftMs: number) {
    const { log, timeoutMs = resultTimeoutMs } = this.deps;
    const maxMs = Math.max(0, Math.min(timeoutMs, leftMs));
    throwIfLost(signal);
    try {
      return await retry(work, { pauseMs, maxMs, signal }).catch((error) => {
        throwIfLost(signal);
        if (!signal.aborted) throw error;
        // The abort may have ended a pause: the store may be back, and this is the last try.
        return work();
      });
    } catch (err) {
      throwIfLost(signal);
      log.warn({ err, jobId: chatId }, 'stored result unavailable');
      return undefined;
    }
  }
}

/** A job that was aborted for any reason but these two is no longer this worker's, which must write nothing of it. */
function throwIfLost({ aborted, reason }: AbortSignal): void {
  if (aborted && !(reason instanceof Cancelled) && !(reason instanceof Failure)) throw reason;
}
