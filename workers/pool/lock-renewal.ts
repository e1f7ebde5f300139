import type { Worker } from 'bullmq';
import type { ProviderId } from '../../shared/contract.js';
import type { Log } from '../../shared/runtime/log.js';
import { LockLost } from '../gate/ends.js';
import type { QueuedJob, RunningJob } from '../job/running-job.js';
import type { RunningJobs } from '../job/running-jobs.js';

export interface LockRenewalDeps {
  worker: Pick<Worker, 'extendJobLocks' | 'processJob'>;
  provider: ProviderId;
  /** How long a lock lasts unless it is renewed, in milliseconds. */
  lockMs: number;
  jobs: Pick<RunningJobs, 'open' | 'close' | 'ofChat' | 'ofPool'>;
  describe: (queued: QueuedJob, token: string) => RunningJob;
  log: Log;
  /** A clock that never jumps, in milliseconds. */
  now?: (() => number) | undefined;
}

/** Three passes may come too late, or fail, before a lock ends. */
const passesPerLock = 4;
/** At most this many passes wait for an answer: in an outage of the store, or in a turn that lasts for minutes. */
const maxUnanswered = 20;

/**
 * Renews the locks of the jobs that a worker holds. One turn of the event loop can last longer than a lock, and no
 * timer fires in it, so a pass that is late is also made between two jobs (decision 40).
 */
export class LockRenewal {
  readonly #deps: LockRenewalDeps;
  readonly #now: () => number;
  readonly #everyMs: number;
  #timer: NodeJS.Timeout | undefined;
  #passedAt: number;
  #unanswered = 0;

  constructor(deps: LockRenewalDeps) {
    this.#deps = deps;
    this.#now = deps.now ?? (() => performance.now());
    this.#passedAt = this.#now();
    this.#everyMs = deps.lockMs / passesPerLock;
    this.#holdWhileProcessed(deps.worker);
  }

  /** Also loads the script into the store: in a long turn, the answer that it is missing would be read too late. */
  start(): void {
    const { worker, lockMs, log } = this.#deps;
    worker.extendJobLocks([], [], lockMs).catch((err) => log.debug({ err }, 'renewal of locks not prepared'));
    this.#timer = setInterval(() => void this.#pass(), this.#everyMs);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** To be called between jobs: renews the locks now if the timer is late, by more than its own jitter. */
  renewIfLate(): void {
    if (this.#now() - this.#passedAt > 1.5 * this.#everyMs) void this.#pass();
  }

  /**
   * A job runs here until BullMQ has done all that it does with it: an end that the store refuses emits neither
   * `completed` nor `failed`, and its lock must run out, so that another worker takes the job over.
   */
  #holdWhileProcessed(worker: LockRenewalDeps['worker']): void {
    const { jobs, describe } = this.#deps;
    const processJob = worker.processJob.bind(worker);
    worker.processJob = async (queued, token, ...others) => {
      const job = describe(queued, token);
      // A job that is taken again has lost its lock before.
      this.#lose(jobs.ofChat(job.chatId).filter(({ id }) => id === job.id));
      jobs.open(job);
      this.renewIfLate();
      try {
        return await processJob(queued, token, ...others);
      } finally {
        jobs.close(job);
      }
    };
  }

  async #pass(): Promise<void> {
    if (this.#unanswered >= maxUnanswered) return;
    const { worker, provider, lockMs, jobs, log } = this.#deps;
    const held = [...jobs.ofPool(provider)].filter(({ holdsLock }) => holdsLock);
    const [jobIds, tokens] = [held.map(({ id }) => id), held.map(({ token }) => token)];
    this.#passedAt = this.#now();
    if (held.length === 0) return;
    this.#unanswered += 1;
    try {
      const failed = new Set(await worker.extendJobLocks(jobIds, tokens, lockMs));
      this.#lose(held.filter(({ id }) => failed.has(id)));
    } catch (err) {
      log.debug({ err }, 'locks not renewed');
    } finally {
      this.#unanswered -= 1;
    }
  }

  /** The store refuses the outcomes of these jobs, and BullMQ emits neither `completed` nor `failed` for them. */
  #lose(jobs: readonly RunningJob[]): void {
    // The others have ended meanwhile.
    const running = jobs.filter(({ holdsLock, isInFlight }) => holdsLock && isInFlight);
    for (const job of jobs) job.holdsLock = false;
    for (const job of running) job.abort(new LockLost());
    if (running.length > 0)
      this.#deps.log.warn({ jobIds: running.map(({ id }) => id) }, 'jobs lost to another worker');
  }
}
