import { Job, type Queue } from 'bullmq';
import PQueue from 'p-queue';
import { type ProviderId, providerIds, type Target } from '../../shared/contracts/contract.js';
import type { LivePools } from '../../shared/fleet/live-pools.js';
import { type Attempt, attemptAfter, jobIdOf } from '../../shared/protocol/attempts.js';
import type { ChatJobPayload } from '../../shared/protocol/messages.js';
import { resultKey } from '../../shared/protocol/stored-chat.js';
import { addNextAttempt, type FollowedJob } from '../../shared/queue/add-attempt.js';
import { type LedgerWriter, lostEntries } from '../../shared/queue/ledger-writer.js';
import type { QueueStore } from '../../shared/queue/queue-store.js';
import type { Log } from '../../shared/runtime/log.js';
import { retry } from '../../shared/runtime/retry.js';
import type { ChatReceiver, PolledChat } from './chat-receiver.js';

interface DeadQueuesDeps {
  queueOf: (provider: ProviderId) => Queue<ChatJobPayload>;
  store: Pick<QueueStore, 'now' | 'records' | 'readJobs' | 'lostRuns'>;
  ledger: Pick<LedgerWriter, 'append'>;
  chats: Pick<ChatReceiver, 'find' | 'onMoved'>;
  pools: Pick<LivePools, 'isAbandoned' | 'isServed'>;
  log: Log;
}

/** Jobs passed on at once: each is read with its conversation, and others need the store as well. */
const maxConcurrent = 10;
/** Jobs of one queue that a sweep looks at. */
const sweepLength = 100;
/** The second of two steps is taken as soon as the store allows it. */
const retryWhileDown = { pauseMs: 250, maxMs: 30_000, unref: true };
/** The states of jobs that have no outcome yet. */
const unfinished = ['prioritized', 'waiting', 'active', 'delayed'] as const;

/** Passes on, by their fallback, chats whose jobs no worker takes any more: all have died or are paused. */
export class DeadQueues {
  readonly #deps: DeadQueuesDeps;
  readonly #passing = new PQueue({ concurrency: maxConcurrent });
  readonly #sweptTo = new Map<ProviderId, number>();

  constructor(deps: DeadQueuesDeps) {
    this.#deps = deps;
  }

  /** Passes on a chat whose job has not ended. Does nothing while a pool may take it, or once its reply is read. */
  async passOn(chat: PolledChat): Promise<void> {
    const { job } = chat;
    if (!job.fallback?.length || chat.isPassedOn || chat.isRead || !this.#isStranded(job)) return;
    chat.isPassedOn = true;
    await this.#pass(job.provider, jobIdOf(chat.id, job.attempt));
    chat.isPassedOn = false;
  }

  /** Passes on stored chats of abandoned queues that no request of this process waits for; never throws. */
  async sweep(): Promise<void> {
    for (const provider of providerIds.filter((id) => this.#deps.pools.isAbandoned({ provider: id })))
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
    const { pools } = this.#deps;
    return pools.isAbandoned(target) && fallback.some((next) => pools.isServed(next));
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

  async #passJob(
    { id: jobId = '', name, data: payload, priority, timestamp }: Job<ChatJobPayload>,
    provider: ProviderId,
  ): Promise<void> {
    const { queueOf, store, ledger, log } = this.#deps;
    const { chatId = jobId, keptUntil, model } = payload;
    const queueMs = Math.max(0, store.now() - timestamp);
    const code = 'provider_unavailable';
    const next = attemptAfter(payload, { provider, model, code, retryable: true, queueMs, providerMs: 0 });
    if (next === undefined) return;
    const followed = { chatId, name, payload, priority, next };
    await ledger.append(...lostEntries(provider, await store.lostRuns(queueOf(provider), [jobId])));
    const isPassed = await (keptUntil === undefined
      ? this.#passPlain(queueOf(provider), jobId, followed)
      : this.#passStored(queueOf(provider), jobId, followed));
    if (isPassed)
      log.warn({ jobId: chatId, provider, next: next.provider }, 'job of an abandoned queue passed on');
  }

  /** Removes the job first, so that two providers are never asked. If this process dies then, so does its caller. */
  async #passPlain(queue: Queue<ChatJobPayload>, jobId: string, followed: FollowedJob): Promise<boolean> {
    const isRemoved = (await queue.remove(jobId)) === 1;
    // A worker has locked it, or it is gone.
    if (!isRemoved) return false;
    // Before the next job is there: the chat must not be taken for lost.
    this.#deps.chats.onMoved(followed.chatId, followed.next);
    await retry(() => this.#add(followed), retryWhileDown);
    return true;
  }

  /** Adds the next job first, so that a chat survives this process. Removes only the job of one that has ended. */
  async #passStored(queue: Queue<ChatJobPayload>, jobId: string, followed: FollowedJob): Promise<boolean> {
    const { store, chats } = this.#deps;
    const { chatId, next } = followed;
    const [job] = await store.readJobs(queue, [jobId]);
    if (job?.state !== 'queued') return false;
    const hasEnded = (await store.records.read(resultKey(chatId))) !== undefined;
    if (!hasEnded) {
      await this.#add(followed);
      chats.onMoved(chatId, next);
    }
    await retry(() => queue.remove(jobId), retryWhileDown);
    return !hasEnded;
  }

  /** Does nothing when the next job is there already. */
  #add(followed: FollowedJob): Promise<void> {
    return addNextAttempt(this.#deps.queueOf(followed.next.provider), this.#deps.store, followed);
  }
}
