import type { Worker } from 'bullmq';
import type { Log } from '../../shared/runtime/log.js';

interface LockRenewalDeps {
  worker: Pick<Worker, 'extendJobLocks'>;
  /** How long a lock lasts unless it is renewed, in milliseconds. */
  lockMs: number;
  /**
   * Called with jobs whose locks could not be renewed: aborts those that still run, and returns their ids. The store
   * refuses their outcomes, and BullMQ emits neither `completed` nor `failed` for them. The others have ended
   * meanwhile.
   */
  onLost: (jobIds: string[]) => string[];
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
  /** Passes that the store has not answered. */
  #unanswered = 0;

  constructor(deps: LockRenewalDeps) {
    this.#deps = deps;
    this.#everyMs = deps.lockMs / passesPerLock;
  }

  /** The jobs whose locks are held. */
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

  /** Renews the job's lock from now on, and the others if the timer is late. */
  hold(jobId: string, token: string): void {
    this.renewIfLate();
    this.#tokens.set(jobId, token);
  }

  /** Stops renewing the job's lock; with a token only that lock, since the job may run here again under another one. */
  release(jobId: string, token = this.#tokens.get(jobId)): void {
    if (this.#tokens.get(jobId) === token) this.#tokens.delete(jobId);
  }

  /** To be called between jobs: renews the locks now if the timer is late. */
  renewIfLate(): void {
    if (performance.now() - this.#passedAt > this.#everyMs) void this.#pass();
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
    const { worker, lockMs, onLost, log } = this.#deps;
    const jobIds = locks.map(([jobId]) => jobId);
    const tokens = new Map(locks);
    const failed = await worker.extendJobLocks(jobIds, [...tokens.values()], lockMs);
    for (const jobId of failed) this.release(jobId, tokens.get(jobId));
    const lost = onLost(failed);
    if (lost.length > 0) log.warn({ jobIds: lost }, 'jobs lost to another worker');
  }
}
