import { Job, type Queue } from 'bullmq';
import PQueue from 'p-queue';
import { type ProviderId, providerIds, type Target } from '../../../shared/contract.js';
import { type Attempt, attemptAfter, type EndedAttempt, jobIdOf } from '../../../shared/protocol/attempts.js';
import type { ChatJobPayload } from '../../../shared/protocol/messages.js';
import { resultKey } from '../../../shared/protocol/stored-chat.js';
import { addNextAttempt } from '../../../shared/queue/add-attempt.js';
import type { QueueStore } from '../../../shared/queue/queue-store.js';
import type { Log } from '../../../shared/runtime/log.js';
import { retry } from '../../../shared/runtime/retry.js';
import type { ChatReceiver, PolledChat } from './result-poller.js';

interface DeadQueuesDeps {
  queueOf: (provider: ProviderId) => Queue<ChatJobPayload>;
  store: Pick<QueueStore, 'now' | 'records' | 'readJobs'>;
  chats: Pick<ChatReceiver, 'find' | 'onMoved'>;
  /** Whether no pool takes the jobs of this target. */
  isAbandoned: (target: Target) => boolean;
  /** Whether a pool takes jobs of this target. */
  isServed: (target: Target) => boolean;
  log: Log;
}

/** Jobs passed on at once: each is read with its conversation, and others need the store as well. */
const maxConcurrent = 10;
/** Jobs of one queue that a sweep looks at. */
const sweepLength = 100;
/** The second of two steps is taken as soon as the store allows it. */
const retryWhileDown = { pauseMs: 250, maxMs: 30_000, unref: true };
/** Where a job without an outcome may be. */
const unfinished = ['prioritized', 'waiting', 'active', 'delayed'] as const;

/**
 * Passes chats on to the next provider of their fallback whose jobs no worker takes any more, because all have died or
 * are paused. Workers do that with the jobs that they have taken and that failed.
 */
export class DeadQueues {
  readonly #deps: DeadQueuesDeps;
  readonly #passing = new PQueue({ concurrency: maxConcurrent });
  /** Where the next sweep of a queue begins. */
  readonly #sweptTo = new Map<ProviderId, number>();

  constructor(deps: DeadQueuesDeps) {
    this.#deps = deps;
  }

  /** For a chat whose job has not ended. Does nothing while a pool may take it, or once its reply is read. */
  async passOn(chat: PolledChat): Promise<void> {
    const { job } = chat;
    if (!job.fallback?.length || chat.isPassedOn || chat.isRead || !this.#isStranded(job)) return;
    chat.isPassedOn = true;
    await this.#pass(job.provider, jobIdOf(chat.id, job.attempt));
    chat.isPassedOn = false;
  }

  /** Passes on stored chats of abandoned queues that no request of this process waits for; never throws. */
  async sweep(): Promise<void> {
    for (const provider of providerIds.filter((id) => this.#deps.isAbandoned({ provider: id })))
      await this.#sweep(provider).catch((err) => this.#deps.log.debug({ err, provider }, 'queue not swept'));
  }

  async #sweep(provider: ProviderId): Promise<void> {
    const start = this.#sweptTo.get(provider) ?? 0;
    const jobIds = await this.#deps
      .queueOf(provider)
      .getRanges([...unfinished], start, start + sweepLength - 1);
    this.#sweptTo.set(provider, jobIds.length === 0 ? 0 : start + sweepLength);
    await Promise.all(jobIds.map((jobId) => this.#pass(provider, jobId, { isSwept: true })));
  }

  #isStranded({ fallback = [], ...target }: Target & Pick<Attempt, 'fallback'>): boolean {
    return this.#deps.isAbandoned(target) && fallback.some(this.#deps.isServed);
  }

  async #pass(provider: ProviderId, jobId: string, { isSwept = false } = {}): Promise<void> {
    try {
      await this.#passing.add(async () => {
        const job = await Job.fromId<ChatJobPayload>(this.#deps.queueOf(provider), jobId);
        if (job && !job.finishedOn && (!isSwept || this.#isForgotten(job, provider)))
          await this.#passJob(job, provider);
      });
    } catch (err) {
      this.#deps.log.debug({ err, jobId }, 'stranded job not passed on');
    }
  }

  /** Chats that are waited for here are polled; those that are not stored end with the process that added them. */
  #isForgotten({ id = '', data }: Job<ChatJobPayload>, provider: ProviderId): boolean {
    const { chatId = id, keptUntil, deadline, fallback, model } = data;
    return (
      keptUntil !== undefined &&
      deadline > this.#deps.store.now() &&
      this.#deps.chats.find(chatId) === undefined &&
      this.#isStranded({ provider, model, fallback })
    );
  }

  async #passJob({ id: jobId = '', data: payload, ...job }: Job<ChatJobPayload>, provider: ProviderId) {
    const { queueOf, store, chats, log } = this.#deps;
    const { chatId = jobId, keptUntil } = payload;
    const next = attemptAfter(payload, this.#endOf(payload, { provider, addedAt: job.timestamp }));
    if (next === undefined) return;
    const followed = { chatId, payload, priority: job.priority, next };
    const passing: Passing = {
      add: () => addNextAttempt(queueOf(next.provider), store, followed),
      remove: async () => (await queueOf(provider).remove(jobId)) === 1,
      onMoved: () => chats.onMoved(chatId, next),
    };
    const isPassed =
      keptUntil === undefined
        ? await passPlain(passing)
        : !(await this.#isRunning(provider, jobId)) &&
          (await passStored(passing, await this.#hasEnded(chatId)));
    if (isPassed)
      log.warn({ jobId: chatId, provider, next: next.provider }, 'job of an abandoned queue passed on');
  }

  async #isRunning(provider: ProviderId, jobId: string): Promise<boolean> {
    const { queueOf, store } = this.#deps;
    const [job] = await store.readJobs(queueOf(provider), [jobId]);
    return job?.state !== 'queued';
  }

  async #hasEnded(chatId: string): Promise<boolean> {
    return (await this.#deps.store.records.read(resultKey(chatId))) !== undefined;
  }

  #endOf(
    { model }: ChatJobPayload,
    { provider, addedAt }: { provider: ProviderId; addedAt: number },
  ): EndedAttempt {
    const queueMs = Math.max(0, this.#deps.store.now() - addedAt);
    return { provider, model, code: 'provider_unavailable', retryable: true, queueMs, providerMs: 0 };
  }
}

/** How one job is passed on. */
interface Passing {
  /** Adds the job of the next attempt; does nothing when it is there already. */
  add(): Promise<void>;
  /** False for a job that a worker has locked, or that is gone. */
  remove(): Promise<boolean>;
  onMoved(): void;
}

/** Removes the job first, so that two providers are never asked. If this process dies then, so does its caller. */
async function passPlain({ add, remove, onMoved }: Passing): Promise<boolean> {
  if (!(await remove())) return false;
  // Before the next job is there: the chat must not be taken for lost.
  onMoved();
  await retry(add, retryWhileDown);
  return true;
}

/** Adds the next job first, so that a chat survives this process. Removes only the job of one that has ended. */
async function passStored({ add, remove, onMoved }: Passing, hasEnded: boolean): Promise<boolean> {
  if (!hasEnded) {
    await add();
    onMoved();
  }
  await retry(remove, retryWhileDown);
  return !hasEnded;
}
