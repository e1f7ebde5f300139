import { Job, type Queue } from 'bullmq';
import type { ProviderId, Target } from '../../../shared/contract.js';
import { attemptAfter, jobIdOf } from '../../../shared/protocol/attempts.js';
import type { ChatJobPayload } from '../../../shared/protocol/messages.js';
import type { Outcome } from '../../../shared/protocol/outcome.js';
import { addNextAttempt } from '../../../shared/queue/add-attempt.js';
import type { QueueStore } from '../../../shared/queue/queue-store.js';
import type { Log } from '../../../shared/runtime/log.js';
import type { PendingJob, PendingReplies } from './pending-replies.js';

interface StrandedJobsDeps {
  queueOf: (provider: ProviderId) => Queue<ChatJobPayload>;
  store: Pick<QueueStore, 'now' | 'records'>;
  pendingReplies: Pick<PendingReplies, 'settle'>;
  /** Whether no pool takes jobs for it, and none has for a while. */
  isAbandoned: (target: Target) => boolean;
  log: Log;
}

const unavailable = {
  kind: 'failed',
  code: 'provider_unavailable',
  retryable: true,
  queueMs: 0,
  providerMs: 0,
} as const satisfies Outcome;

/**
 * Passes chats on to the next provider of their fallback whose jobs nobody does any more. Workers do that with jobs that they have taken
 * and failed; here are those that no worker takes, because all have died or have their breaker open, and those of a worker that has died.
 */
export class StrandedJobs {
  readonly #deps: StrandedJobsDeps;

  constructor(deps: StrandedJobsDeps) {
    this.#deps = deps;
  }

  /** For a job that has not ended; never throws, and does nothing while a pool may take it, or a worker has its lock. */
  async passOn(job: PendingJob): Promise<void> {
    if (!job.fallback?.length || !this.#deps.isAbandoned(job)) return;
    try {
      await this.#passOn(job);
    } catch (err) {
      this.#deps.log.debug({ err, jobId: job.jobId }, 'stranded job not passed on');
    }
  }

  async #passOn({ jobId: chatId, provider, attempt }: PendingJob): Promise<void> {
    const { queueOf, store, pendingReplies, log } = this.#deps;
    const jobId = jobIdOf(chatId, attempt);
    const queue = queueOf(provider);
    const job = await Job.fromId<ChatJobPayload>(queue, jobId);
    if (job === undefined) return;
    const { data: payload, priority } = job;
    const next = attemptAfter(payload, { provider, code: 'provider_unavailable', retryable: true });
    // Whoever removes it passes it on; a job that a worker has locked cannot be removed.
    if (next === undefined || (await queue.remove(jobId)) !== 1) return;
    await addNextAttempt(queueOf(next.provider), store, { chatId, payload, priority, next });
    pendingReplies.settle(chatId, { ...unavailable, next });
    log.warn({ jobId: chatId, provider, next: next.provider }, 'job of an abandoned queue passed on');
  }
}
