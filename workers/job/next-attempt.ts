import {
  type Attempt,
  attemptAfter,
  type EndedAttempt,
  isMendable,
  jobIdOf,
} from '../../shared/protocol/attempts.js';
import { type ChatJob, encodeChatJob } from '../../shared/protocol/messages.js';
import { addNextAttempt } from '../../shared/queue/add-attempt.js';
import { type Queues, queueOf } from '../../shared/queue/channels.js';
import type { QueueStore } from '../../shared/queue/queue-store.js';
import type { Log } from '../../shared/runtime/log.js';
import { retry, storeTimeoutMs, withTimeout } from '../../shared/runtime/retry.js';
import { Cancelled, LockLost } from '../gate/gated-call.js';
import { startOf } from './call.js';
import { minTimeLeftMs } from './retry.js';
import type { QueuedJob, RunningJob } from './running-job.js';

interface NextAttemptsDeps {
  store: Pick<QueueStore, 'now' | 'records' | 'readJobs'>;
  queues: Queues;
  log: Log;
  /** How long the store may take to answer before it is asked again, in milliseconds. */
  answerWithinMs?: number;
}

/** A chat's job, as far as what follows it goes. */
type FailingJob = Pick<RunningJob, 'chatId' | 'signal'> & {
  readonly queued: Pick<QueuedJob, 'name' | 'priority'>;
};

const pauses = { pauseMs: 50, maxPauseMs: 1000 };

/**
 * Passes chats whose attempts have failed on to the next provider of their fallback, if they have one. A chat begins at
 * the first provider that would do it in time (`api/chat/admission.ts`). When its job fails before a part of the reply
 * was sent, and another provider can mend the failure, this adds a job to that one's queue, whose id is the chat's and
 * the attempt's number. The outcome of the first job names it, so that the chat moves at the API (`live-chat.ts`).
 */
export class NextAttempts {
  #isClosing = false;

  constructor(private readonly deps: NextAttemptsDeps) {}

  /**
   * The next attempt, if a worker that died during this job had begun it; else undefined. Asks the store until it
   * answers, or until no call may begin any longer: a call here while the next provider is called would be paid twice.
   */
  async find(job: FailingJob, chatJob: ChatJob): Promise<Attempt | undefined> {
    const next = attemptAfter(chatJob, { provider: chatJob.provider, code: 'internal' });
    if (next === undefined) return undefined;
    const { store, queues } = this.deps;
    const ids = [jobIdOf(job.chatId, next.attempt)];
    const read = () => store.readJobs(queueOf(queues, next.provider), ids);
    const [found] = await this.#untilAnswered(read, job, chatJob).catch(() => []);
    return found === undefined || found.state === 'unknown' ? undefined : next;
  }

  /**
   * Begins the attempt that follows the ended one, and returns it. Undefined when another provider cannot help, when
   * there is no time left, or when the store has not confirmed the job by then. A job that the store adds later makes
   * no call, so a chat that has ended with its failure is not paid for elsewhere.
   */
  async begin(job: FailingJob, chatJob: ChatJob, ended: EndedAttempt): Promise<Attempt | undefined> {
    const { chatId, queued } = job;
    const { store, queues, log } = this.deps;
    const next = attemptAfter(chatJob, ended);
    if (next === undefined || !isMendable(ended) || this.#leftMs(chatJob) < minTimeLeftMs) return undefined;
    const { name, priority = 0 } = queued;
    const followed = { chatId, name, payload: encodeChatJob(chatJob), priority, next };
    const add = () => addNextAttempt(queueOf(queues, next.provider), store, followed);
    try {
      await this.#untilAnswered(add, job, chatJob);
      return next;
    } catch (err) {
      log.warn({ err, jobId: chatId, next: next.provider }, 'fallback not begun');
      return undefined;
    }
  }

  /** Starts no more attempts while the store does not answer. */
  close(): void {
    this.#isClosing = true;
  }

  /** How long a call may still begin, in milliseconds. */
  #leftMs(chatJob: ChatJob): number {
    return Math.max(1, startOf(chatJob) - this.deps.store.now());
  }

  /** Repeats the work until the store answers, or this job's lock is lost, or its caller has gone. */
  #untilAnswered<T>(work: () => Promise<T>, { signal }: FailingJob, chatJob: ChatJob): Promise<T> {
    const isLeft = () => signal.reason instanceof Cancelled || signal.reason instanceof LockLost;
    const shouldRetry = () => !isLeft() && !this.#isClosing;
    // To ask again does nothing when the store has taken the job.
    const { answerWithinMs = storeTimeoutMs } = this.deps;
    const once = () => withTimeout(Math.min(answerWithinMs, this.#leftMs(chatJob)), work());
    return retry(once, { ...pauses, maxMs: this.#leftMs(chatJob), shouldRetry, unref: true });
  }
}
