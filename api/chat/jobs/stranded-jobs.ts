import { Job, type Queue } from 'bullmq';
import PQueue from 'p-queue';
import type { ProviderId } from '../../../shared/contract.js';
import { attemptAfter, type EndedAttempt, jobIdOf } from '../../../shared/protocol/attempts.js';
import type { ChatJobPayload } from '../../../shared/protocol/messages.js';
import { addNextAttempt } from '../../../shared/queue/add-attempt.js';
import type { QueueStore } from '../../../shared/queue/queue-store.js';
import type { Log } from '../../../shared/runtime/log.js';
import { retry } from '../../../shared/runtime/retry.js';
import type { PendingJob, PendingReplies } from './pending-replies.js';

interface StrandedJobsDeps {
  queueOf: (provider: ProviderId) => Queue<ChatJobPayload>;
  store: Pick<QueueStore, 'now' | 'records'>;
  pendingReplies: Pick<PendingReplies, 'moveOn'>;
  /** Whether no pool takes the job, but one takes jobs for its fallback. */
  isAbandoned: (job: PendingJob) => boolean;
  /** Whether somebody here has read a part of the chat's reply, which nobody else can go on with. */
  isRead: (jobId: string) => boolean;
  log: Log;
}

/** Jobs passed on at once: a whole queue may be stranded, each job is read with its conversation, and others need the store meanwhile. */
const maxConcurrent = 10;
/** How the next job is added when its predecessor is gone: the store may have failed in between. */
const retryWhileDown = { pauseMs: 250, maxMs: 30_000, unref: true };

/**
 * Passes chats on to the next provider of their fallback whose jobs nobody does any more. Workers do that with jobs
 * that they have taken and failed; this class has those that no worker takes, because all have died or are paused, and
 * those of dead workers.
 */
export class StrandedJobs {
  readonly #deps: StrandedJobsDeps;
  readonly #passing = new PQueue({ concurrency: maxConcurrent });
  /** Ids of the chats that are being passed on: every poll finds those that wait here. */
  readonly #underWay = new Set<string>();

  constructor(deps: StrandedJobsDeps) {
    this.#deps = deps;
  }

  /** For a job that has not ended; never throws, and does nothing while a pool may take it, or a worker has its lock. */
  async passOn(job: PendingJob): Promise<void> {
    const { jobId, fallback } = job;
    const { isAbandoned, isRead } = this.#deps;
    if (!fallback?.length || this.#underWay.has(jobId) || !isAbandoned(job) || isRead(jobId)) return;
    this.#underWay.add(jobId);
    try {
      await this.#passing.add(() => this.#passOn(job));
    } catch (err) {
      this.#deps.log.debug({ err, jobId }, 'stranded job not passed on');
    } finally {
      this.#underWay.delete(jobId);
    }
  }

  /** Whether the chat is being passed on now: no job of it may be in the store then, which is no reason to add it again. */
  isPassingOn(jobId: string): boolean {
    return this.#underWay.has(jobId);
  }

  async #passOn({ jobId: chatId, provider, attempt }: PendingJob): Promise<void> {
    const { queueOf, store, pendingReplies, log } = this.#deps;
    const jobId = jobIdOf(chatId, attempt);
    const queue = queueOf(provider);
    const job = await Job.fromId<ChatJobPayload>(queue, jobId);
    // One that has ended meanwhile could be removed, too.
    if (job === undefined || job.finishedOn) return;
    const { data: payload, priority } = job;
    const next = attemptAfter(payload, this.#endOf(job, provider));
    // Whoever removes it passes it on; a job that a worker has locked cannot be removed.
    if (next === undefined || (await queue.remove(jobId)) !== 1) return;
    // Before the next one is there: nobody is to take this one for lost.
    pendingReplies.moveOn(chatId, next);
    const followed = { chatId, payload, priority, next };
    await retry(() => addNextAttempt(queueOf(next.provider), store, followed), retryWhileDown);
    log.warn({ jobId: chatId, provider, next: next.provider }, 'job of an abandoned queue passed on');
  }

  #endOf({ data: { model }, timestamp }: Job<ChatJobPayload>, provider: ProviderId): EndedAttempt {
    return {
      ...{ provider, ...(model !== undefined && { model }) },
      ...{ code: 'provider_unavailable', retryable: true },
      ...{ queueMs: Math.max(0, this.#deps.store.now() - timestamp), providerMs: 0 },
    };
  }
}
