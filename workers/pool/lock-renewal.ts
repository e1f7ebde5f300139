import type { Worker } from 'bullmq';
import type { Log } from '../../shared/runtime/log.js';

interface LockRenewalDeps {
  worker: Pick<Worker, 'extendJobLocks' | 'processJob'>;
  /** How long a lock lasts unless it is renewed, in milliseconds. */
  lockMs: number;
  /**
   * Called with the locks that could not be renewed, as tokens by job: aborts the jobs that still run under them, and
   * returns their ids. The store
   * refuses their outcomes, and BullMQ emits neither `completed` nor `failed` for them. The others have ended
   * meanwhile.
   */
  onLost: (locks: ReadonlyMap<string, string>) => string[];
  log: Log;
}

/** Three passes may come too late, or fail, before a lock ends. */
const passesPerLock = 4;
/** At most this many passes wait for an answer: in an outage of the store, or in a turn that lasts for minutes. */
const maxUnanswered = 20;

/**
 * Renews the locks of the jobs that a worker holds. BullMQ's own renewal waits for a timer. When thousands of replies
 * arrive at once, one turn of the event loop can last longer than a lock, and no timer fires in it. Therefore a pass
 * that is late is also made between two jobs.
 */
export class LockRenewal {
  readonly #deps: LockRenewalDeps;
  readonly #everyMs: number;
  /** The token of each lock, by the id of its job. */
  readonly #tokens = new Map<string, string>();
  #timer: NodeJS.Timeout | undefined;
  #passedAt = performance.now();
  #unanswered = 0;

  constructor(deps: LockRenewalDeps) {
    this.#deps = deps;
    this.#everyMs = deps.lockMs / passesPerLock;
    this.#holdWhileProcessed(deps.worker);
  }

  get jobIds(): ReadonlySet<string> {
    return new Set(this.#tokens.keys());
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

  /** Stops renewing this lock: the job has gone back to its queue. It may run here again under another token. */
  release(jobId: string, token: string): void {
    if (this.#tokens.get(jobId) === token) this.#tokens.delete(jobId);
  }

  /** To be called between jobs: renews the locks now if the timer is late, by more than its own jitter. */
  renewIfLate(): void {
    if (performance.now() - this.#passedAt > 1.5 * this.#everyMs) void this.#pass();
  }

  /**
   * Until BullMQ has done all that it does with a job: an end that the store refuses emits neither `completed` nor
   * `failed`, and its lock must run out, so that another worker takes the job over.
   */
  #holdWhileProcessed(worker: LockRenewalDeps['worker']): void {
    const processJob = worker.processJob.bind(worker);
    worker.processJob = async (job, token, ...others) => {
      const { id = '' } = job;
      this.#hold(id, token);
      try {
        return await processJob(job, token, ...others);
      } finally {
        this.release(id, token);
      }
    };
  }

  /** A job that is taken again has lost its lock before. */
  #hold(jobId: string, token: string): void {
    const before = this.#tokens.get(jobId);
    this.#tokens.set(jobId, token);
    if (before !== undefined) this.#reportLost(new Map([[jobId, before]]));
    this.renewIfLate();
  }

  async #pass(): Promise<void> {
    if (this.#unanswered >= maxUnanswered) return;
    this.#unanswered += 1;
    this.#passedAt = performance.now();
    try {
      await this.#renew([...this.#tokens.entries()]);
    } catch (err) {
      this.#deps.log.debug({ err }, 'locks not renewed');
    } finally {
      this.#unanswered -= 1;
    }
  }

  async #renew(locks: [jobId: string, token: string][]): Promise<void> {
    if (locks.length === 0) return;
    const { worker, lockMs } = this.#deps;
    const [jobIds, tokens] = [locks.map(([jobId]) => jobId), locks.map(([, token]) => token)];
    const failed = new Set(await worker.extendJobLocks(jobIds, tokens, lockMs));
    const lost = new Map(locks.filter(([jobId]) => failed.has(jobId)));
    for (const [jobId, token] of lost) this.release(jobId, token);
    this.#reportLost(lost);
  }

  #reportLost(locks: ReadonlyMap<string, string>): void {
    const jobIds = this.#deps.onLost(locks);
    if (jobIds.length > 0) this.#deps.log.warn({ jobIds }, 'jobs lost to another worker');
  }
}
