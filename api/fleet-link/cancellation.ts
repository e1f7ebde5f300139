import { setImmediate as nextTurn } from 'node:timers/promises';
import { Job, type Queue } from 'bullmq';
import PQueue from 'p-queue';
import type { ProviderId } from '../../shared/contracts/contract.js';
import type { ApiInstruments } from '../../shared/metrics/instruments.js';
import { attemptAfter, jobIdOf } from '../../shared/protocol/attempts.js';
import {
  type Cancel,
  type ChatJobPayload,
  type ResultMessage,
  topics,
} from '../../shared/protocol/messages.js';
import { writtenVersion } from '../../shared/protocol/version.js';
import { removeTexts } from '../../shared/queue/blobs.js';
import { type LedgerWriter, lostEntries } from '../../shared/queue/ledger-writer.js';
import type { QueueStore } from '../../shared/queue/queue-store.js';
import type { Relay } from '../../shared/queue/relay.js';
import type { Log } from '../../shared/runtime/log.js';
import type { PendingJob } from './chat-receiver.js';

interface CancellationDeps {
  queueOf: (provider: ProviderId) => Queue<ChatJobPayload>;
  store: Pick<QueueStore, 'kind' | 'readJobs' | 'lostRuns' | 'blobs'>;
  ledger: Pick<LedgerWriter, 'append'>;
  relay: Pick<Relay, 'publish'>;
  metrics: Pick<ApiInstruments['metrics'], 'cancels'>;
  log: Log;
}

interface CancelledJob extends PendingJob {
  /** When the wait for its add ended, by `performance.now()`. */
  readonly unconfirmedAt?: number;
}

/** Ids in one message; with a UUID each it stays far below what the relay takes. */
const maxIdsPerMessage = 1000;
/** Jobs read or removed at once: thousands of callers may disconnect together, and others need the store meanwhile. */
const maxConcurrent = 10;
/** The pause before a cancel of an unconfirmed job that could not be published is published again. */
const republishMs = 1000;
/** How long such a cancel is repeated. Pools remember a cancel just as long, and few deadlines are later. */
const republishForMs = 60_000;
/** A running job cannot be removed, but ends within this time once its worker has received the cancel. */
const abortGraceMs = 1000;

/**
 * Cancels jobs that no request waits for, in this order:
 * 1. the job of a stored chat is read first: nothing is done unless it is queued or running;
 * 2. the cancel is published to the pools, because a running call costs money, and for stored chats to every API
 *    process; jobs that are cancelled while a message is on its way share the next one;
 * 3. the job is removed from its queue, once its lost runs are in the ledger;
 * 4. one that runs on after `abortGraceMs` gets a deadline that is over.
 */
export class Cancellation {
  readonly #deps: CancellationDeps;
  /** Ids of the jobs that are being cancelled, so that concurrent requests for one job cause one cancel. */
  readonly #underWay = new Set<string>();
  readonly #unread: PendingJob[] = [];
  readonly #unpublished: CancelledJob[] = [];
  readonly #reads = new PQueue({ concurrency: 1 });
  readonly #publications = new PQueue({ concurrency: 1 });
  readonly #removals = new PQueue({ concurrency: maxConcurrent });

  constructor(deps: CancellationDeps) {
    this.#deps = deps;
  }

  /** Starts cancelling a job whose add was confirmed; never throws. May be repeated for a stored chat. */
  cancel(job: PendingJob): void {
    if (!this.#claim(job)) return;
    if (job.isStored) {
      this.#unread.push(job);
      void this.#reads.add(() => this.#readBatch());
    } else this.#start(job);
  }

  /** Cancels a job whose add was not confirmed, as soon as the store allows it within a minute; never throws. */
  cancelUnconfirmed(job: PendingJob): void {
    if (!this.#claim(job)) return;
    const { store, queueOf } = this.#deps;
    // Redis executes the commands of one connection in order, so no worker can take the job between add and removal.
    if (store.kind === 'redis')
      void queueOf(job.provider)
        .remove(jobIdOf(job.jobId, job.attempt))
        .catch(() => undefined);
    this.#start({ ...job, unconfirmedAt: performance.now() });
  }

  /** Resolves when everything cancelled so far was published and, unless it runs, removed. */
  async flush(): Promise<void> {
    await this.#reads.onIdle();
    await this.#publications.onIdle();
    await this.#removals.onIdle();
  }

  /** False when the job is being cancelled already. */
  #claim({ jobId }: PendingJob): boolean {
    if (this.#underWay.has(jobId)) return false;
    this.#underWay.add(jobId);
    return true;
  }

  async #readBatch(): Promise<void> {
    if (this.#unread.length === 0) return;
    await nextTurn();
    const jobs = this.#unread.splice(0, maxConcurrent);
    const unfinished = await Promise.all(jobs.map((job) => this.#isUnfinished(job)));
    for (const [n, job] of jobs.entries()) {
      if (unfinished[n]) this.#start(job);
      else this.#underWay.delete(job.jobId);
    }
  }

  /** Whether the job, or one that a worker has made of it since, may still run: also where it cannot be read. */
  async #isUnfinished(job: PendingJob): Promise<boolean> {
    const { store, queueOf } = this.#deps;
    const reads = possibleAttempts(job).map(({ provider, jobId, attempt }) =>
      store.readJobs(queueOf(provider), [jobIdOf(jobId, attempt)]).catch(() => []),
    );
    const found = await Promise.all(reads);
    return found.some(([each]) => !each || !['completed', 'failed', 'unknown'].includes(each.state));
  }

  #start(job: CancelledJob): void {
    const kind = job.unconfirmedAt !== undefined ? 'refused' : job.isStored ? 'asked' : 'caller_gone';
    this.#deps.metrics.cancels.inc({ provider: job.provider, kind });
    this.#enqueue(job);
  }

  #enqueue(job: CancelledJob): void {
    this.#unpublished.push(job);
    void this.#publications.add(() => this.#publishBatch());
  }

  async #publishBatch(): Promise<void> {
    if (this.#unpublished.length === 0) return;
    // Jobs that are cancelled in the same turn share a message.
    await nextTurn();
    const jobs = this.#unpublished.splice(0, maxIdsPerMessage);
    const attempts = jobs.flatMap((job) => possibleAttempts(job));
    const byProvider = Map.groupBy(attempts, ({ provider }) => provider);
    const stored = jobs.filter(({ isStored }) => isStored).map(({ jobId }) => ({ jobId }));
    await Promise.all([
      ...[...byProvider].map(([provider, cancelled]) => this.#publishCancel(provider, cancelled)),
      // A process that misses the message reads the outcome's record.
      stored.length > 0 && this.#publish(topics.storedResult, { v: writtenVersion, settled: stored }),
    ]);
    for (const job of attempts) void this.#removals.add(() => this.#remove(job, { isLast: false }));
  }

  async #publishCancel(provider: ProviderId, jobs: readonly CancelledJob[]): Promise<void> {
    const jobIds = [...new Set(jobs.map(({ jobId }) => jobId))];
    if (await this.#publish(topics.cancel(provider), { v: writtenVersion, jobIds })) return;
    const since = performance.now() - republishForMs;
    for (const job of jobs)
      if (job.unconfirmedAt !== undefined && job.unconfirmedAt > since)
        setTimeout(() => this.#enqueue(job), republishMs).unref();
  }

  /** False when the store does not take the message. */
  async #publish(topic: string, message: Cancel | ResultMessage): Promise<boolean> {
    try {
      await this.#deps.relay.publish(topic, message);
      return true;
    } catch (err) {
      this.#deps.log.debug({ err, topic }, 'cancels not published');
      return false;
    }
  }

  async #remove(job: CancelledJob, { isLast }: { isLast: boolean }): Promise<void> {
    const { provider, jobId: chatId, attempt } = job;
    const jobId = jobIdOf(chatId, attempt);
    try {
      const { queueOf, store, ledger } = this.#deps;
      const queue = queueOf(provider);
      await ledger.append(...lostEntries(provider, await store.lostRuns(queue, [jobId])));
      // The texts of any other chat are removed with its last request (`ChatService`).
      const stored = job.isStored ? await Job.fromId<ChatJobPayload>(queue, jobId) : undefined;
      const isRemoved = (await queue.remove(jobId)) === 1;
      if (isRemoved && stored) await removeTexts(store.blobs, stored);
      if (!isRemoved && !isLast) {
        const removeLast = () => this.#removals.add(() => this.#remove(job, { isLast: true }));
        setTimeout(removeLast, abortGraceMs).unref();
        return;
      }
      // Should the worker that runs the job die, the next one finds the deadline over and makes no call.
      const running = isRemoved ? undefined : await Job.fromId<ChatJobPayload>(queue, jobId);
      await running?.updateData({ ...running.data, deadline: 0 });
    } catch (err) {
      this.#deps.log.debug({ err, jobId, provider }, 'cancelled job not removed');
    }
    this.#underWay.delete(chatId);
  }
}

/** The attempt that is known to be under way, and those that a worker may have begun meanwhile, or may begin. */
function possibleAttempts({ fallback = [], ...job }: CancelledJob): CancelledJob[] {
  const next = attemptAfter({ ...job, fallback }, { provider: job.provider, code: 'internal' });
  return [job, ...(next ? possibleAttempts({ ...job, ...next }) : [])];
}
