import { Failure } from '../../shared/failures.js';
import { type ResultMessage, topics } from '../../shared/protocol/messages.js';
import { brokenOutcome, encodeOutcome, givenUpOutcome, type Outcome } from '../../shared/protocol/outcome.js';
import {
  decodeStoredResult,
  encodeStoredResult,
  resultKey,
  resultTimeoutMs,
} from '../../shared/protocol/stored-chat.js';
import { writtenVersion } from '../../shared/protocol/version.js';
import type { RecordStore } from '../../shared/queue/queue-store.js';
import type { Relay } from '../../shared/queue/relay.js';
import type { Log } from '../../shared/runtime/log.js';
import { retry } from '../../shared/runtime/retry.js';
import { Cancelled } from '../gate/gated-call.js';
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

interface ReplyPublisherDeps {
  relay: Pick<Relay, 'publish' | 'send'>;
  storedResults: StoredResults;
  log: Log;
}

type EndedJob = Pick<RunningJob, 'chatId' | 'facts' | 'isPublished'>;

type SettledJob = ResultMessage['settled'][number];

/** A longer outcome is left to the record: the relay refuses messages over 512 KiB, escapes included. */
const maxOutcomeChars = 80_000;

/**
 * Publishes once how a job ended, to the API process that waits for it, and of a stored chat to all: any of them may
 * have a caller who has come back. Jobs that end in the same turn of the event loop share a message to each process.
 */
export class ReplyPublisher {
  readonly #deps: ReplyPublisherDeps;
  readonly #unpublished = new Map<string, SettledJob[]>();
  readonly #recording = new Set<Promise<void>>();
  readonly #publishing = new Set<Promise<void>>();

  constructor(deps: ReplyPublisherDeps) {
    this.#deps = deps;
  }

  /**
   * Publishes an outcome, as `encodeOutcome` writes it, unless that was done before. One that counts even if the job is
   * lost may come before BullMQ has stored it: both go to Redis in one write. A long one waits until it `isStored`.
   */
  publish(job: EndedJob, outcome: string, { isStored = false } = {}): void {
    const isShort = outcome.length <= maxOutcomeChars;
    if (job.isPublished || !(isShort || isStored)) return;
    job.isPublished = true;
    const { replyTo, keptUntil } = job.facts;
    // An API process that waits for a job without an address finds its record.
    if (replyTo === undefined) return;
    this.#add(topics.reply(replyTo), { jobId: job.chatId, ...(isShort && { outcome }) });
    if (keptUntil !== undefined) this.#add(topics.storedResult, { jobId: job.chatId });
  }

  /** Publishes that a job broke, or was given up; the failure of a stored chat is recorded first. */
  publishFailure(job: EndedJob): void {
    const { chatId, facts } = job;
    // Also of a job that was aborted.
    const { signal } = new AbortController();
    const recording = this.#deps.storedResults
      .record({ chatId, facts, signal }, givenUpOutcome)
      .then((outcome) => this.publish(job, encodeOutcome(outcome), { isStored: true }))
      .finally(() => this.#recording.delete(recording));
    this.#recording.add(recording);
  }

  /** Resolves when everything has been published, or could not be. */
  async flush(): Promise<void> {
    await Promise.all(this.#recording);
    this.#publishAll();
    await Promise.all(this.#publishing);
  }

  #add(topic: string, result: SettledJob): void {
    if (this.#unpublished.size === 0) setImmediate(() => this.#publishAll());
    const others = this.#unpublished.get(topic);
    if (others === undefined) this.#unpublished.set(topic, [result]);
    else others.push(result);
  }

  #publishAll(): void {
    for (const [topic, results] of this.#unpublished)
      for (const batch of inBatches(results)) this.#publishBatch(topic, batch);
    this.#unpublished.clear();
  }

  #publishBatch(topic: string, settled: SettledJob[]): void {
    const { relay, log } = this.#deps;
    const message: ResultMessage = { v: writtenVersion, settled };
    const isToAll = topic === topics.storedResult;
    const publishing = (isToAll ? relay.publish(topic, message) : relay.send(topic, message))
      .catch((err) => log.debug({ err, jobIds: settled.map(({ jobId }) => jobId) }, 'results not published'))
      .finally(() => this.#publishing.delete(publishing));
    this.#publishing.add(publishing);
  }
}

function inBatches(results: SettledJob[]): SettledJob[][] {
  const batches: SettledJob[][] = [];
  let size = Number.POSITIVE_INFINITY;
  for (const result of results) {
    size += result.outcome?.length ?? 0;
    if (size > maxOutcomeChars) {
      batches.push([]);
      size = result.outcome?.length ?? 0;
    }
    batches.at(-1)?.push(result);
  }
  return batches;
}
