import type { ProviderId } from '../../shared/contract.js';
import {
  type Attempt,
  attemptAfter,
  type EndedAttempt,
  isMendable,
  jobIdOf,
} from '../../shared/protocol/attempts.js';
import { type ChatJob, encodeChatJob, queueName } from '../../shared/protocol/messages.js';
import { addNextAttempt } from '../../shared/queue/add-attempt.js';
import type { QueueStore } from '../../shared/queue/queue-store.js';
import type { Log } from '../../shared/runtime/log.js';
import { retry } from '../../shared/runtime/retry.js';
import { storeTimeoutMs, withTimeout } from '../../shared/runtime/with-timeout.js';
import { Cancelled, LockLost } from './running-job.js';

type Queue = ReturnType<QueueStore['createQueue']>;

interface NextAttemptsDeps {
  store: Pick<QueueStore, 'createQueue' | 'now' | 'records' | 'readJobs'>;
  log: Log;
}

/** A chat's job, as far as what follows it goes. */
interface FailingJob {
  readonly chatId: string;
  readonly chatJob: ChatJob;
  readonly priority: number;
  /** Aborts as the signal of `RunningJob`. */
  readonly signal: AbortSignal;
}

/** Less time than this to the deadline is not worth another call. */
const minTimeLeftMs = 250;
const pauses = { pauseMs: 50, maxPauseMs: 1000 };

/** How long the store may take to let go, in milliseconds. */
const closingMs = 1000;

/** Passes chats whose attempts have failed on to the next provider of their fallback. */
export class NextAttempts {
  readonly #deps: NextAttemptsDeps;
  readonly #queues = new Map<ProviderId, Promise<Queue>>();
  #isClosing = false;

  constructor(deps: NextAttemptsDeps) {
    this.#deps = deps;
  }

  /** What may follow this job; undefined for one without a fallback. */
  of(job: FailingJob): NextAttempt | undefined {
    if (!job.chatJob.fallback?.length) return undefined;
    const queueOf = (provider: ProviderId) => this.#queueOf(provider);
    return new NextAttempt(job, { ...this.#deps, queueOf, isClosing: () => this.#isClosing });
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    const queues = await Promise.allSettled(this.#queues.values());
    const closing = queues.map((queue) => queue.status === 'fulfilled' && queue.value.close());
    await withTimeout(closingMs, Promise.all(closing)).catch(() => undefined);
  }

  /** In PostgreSQL a queue whose first connection fails never recovers. */
  #queueOf(provider: ProviderId): Promise<Queue> {
    const opened = this.#queues.get(provider) ?? this.#open(provider);
    this.#queues.set(provider, opened);
    opened.catch(() => this.#queues.delete(provider));
    return opened;
  }

  async #open(provider: ProviderId): Promise<Queue> {
    const queue = this.#deps.store.createQueue(queueName(provider));
    try {
      await queue.waitUntilReady();
      return queue;
    } catch (error) {
      await queue.close().catch(() => undefined);
      throw error;
    }
  }
}

interface NextAttemptDeps extends Pick<NextAttemptsDeps, 'store' | 'log'> {
  queueOf: (provider: ProviderId) => Promise<Queue>;
  isClosing: () => boolean;
}

/** What may follow one job with a fallback. */
export class NextAttempt {
  readonly #job: FailingJob;
  readonly #deps: NextAttemptDeps;

  constructor(job: FailingJob, deps: NextAttemptDeps) {
    this.#job = job;
    this.#deps = deps;
  }

  /**
   * The next attempt, if a worker that died during this job had begun it; else undefined. Asks the store until it
   * answers, or until no call may begin any longer: a call here while the next provider is called would be paid twice.
   */
  async find(): Promise<Attempt | undefined> {
    const { chatId, chatJob } = this.#job;
    const next = attemptAfter(chatJob, { provider: chatJob.provider, code: 'internal' });
    if (next === undefined) return undefined;
    const { queueOf, store } = this.#deps;
    const read = async () => store.readJobs(await queueOf(next.provider), [jobIdOf(chatId, next.attempt)]);
    const [found] = await this.#untilAnswered(read).catch(() => []);
    return found === undefined || found.state === 'unknown' ? undefined : next;
  }

  /**
   * Begins the attempt that follows the ended one, and returns it. Undefined when another provider cannot help, when
   * there is no time left, or when the store has not confirmed the job by then. A job that the store adds later makes
   * no call, so a chat that has ended with its failure is not paid for elsewhere.
   */
  async begin(ended: EndedAttempt): Promise<Attempt | undefined> {
    const { chatId, chatJob, priority } = this.#job;
    const { store, log, queueOf } = this.#deps;
    const next = attemptAfter(chatJob, ended);
    if (next === undefined || !isMendable(ended) || this.#leftMs < minTimeLeftMs) return undefined;
    const followed = { chatId, payload: encodeChatJob(chatJob), priority, next };
    const add = async () => addNextAttempt(await queueOf(next.provider), store, followed);
    try {
      await this.#untilAnswered(add);
      return next;
    } catch (err) {
      log.warn({ err, jobId: chatId, next: next.provider }, 'fallback not begun');
      return undefined;
    }
  }

  /** How long a call may still begin, in milliseconds. */
  get #leftMs(): number {
    const { deadline, firstDeltaBy = deadline } = this.#job.chatJob;
    return Math.max(1, Math.min(deadline, firstDeltaBy) - this.#deps.store.now());
  }

  /** Repeats the work until the store answers, or this job's lock is lost, or its caller has gone. */
  #untilAnswered<T>(work: () => Promise<T>): Promise<T> {
    const isOver = () => {
      const { aborted, reason } = this.#job.signal;
      const isLeft = aborted && (reason instanceof Cancelled || reason instanceof LockLost);
      return isLeft || this.#deps.isClosing();
    };
    // To ask again does nothing when the store has taken the job.
    const once = () => withTimeout(Math.min(storeTimeoutMs, this.#leftMs), work());
    return retry(once, { ...pauses, maxMs: this.#leftMs, shouldRetry: () => !isOver(), unref: true });
  }
}
