import type { Worker } from 'bullmq';
import type { ProviderId } from '../../shared/contracts/contract.js';
import type { Log } from '../../shared/runtime/log.js';
import type { RunningJobs } from '../job/running-jobs.js';

export interface LockRenewalDeps {
  /** Extends the locks with these tokens; gives the ids of the jobs whose locks are gone. */
  extendLocks: Worker['extendJobLocks'];
  provider: ProviderId;
  /** How long a lock lasts unless it is renewed, in milliseconds. */
  lockMs: number;
  jobs: Pick<RunningJobs, 'ofPool'>;
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
 * timer fires in it, so a pass that is late is also made between two jobs: 2,054 of 13,157 chats were called
 * twice before.
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
  }

  /** Also loads the script into the store: in a long turn, the answer that it is missing would be read too late. */
  start(): void {
    const { extendLocks, lockMs, log } = this.#deps;
    extendLocks([], [], lockMs).catch((err) => log.debug({ err }, 'renewal of locks not prepared'));
    this.#timer = setInterval(() => void this.#pass(), this.#everyMs);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** To be called between jobs: renews the locks now if the timer is late, by more than its own jitter. */
  renewIfLate(): void {
    if (this.#now() - this.#passedAt > 1.5 * this.#everyMs) void this.#pass();
  }

  async #pass(): Promise<void> {
    if (this.#unanswered >= maxUnanswered) return;
    const { extendLocks, provider, lockMs, jobs, log } = this.#deps;
    const held = [...jobs.ofPool(provider)].filter(({ holdsLock }) => holdsLock);
    const [jobIds, tokens] = [held.map(({ id }) => id), held.map(({ token }) => token)];
    this.#passedAt = this.#now();
    if (held.length === 0) return;
    this.#unanswered += 1;
    try {
      const failed = new Set(await extendLocks(jobIds, tokens, lockMs));
      // The others have ended meanwhile.
      const lost = held.filter((job) => failed.has(job.id) && job.loseLock()).map(({ id }) => id);
      if (lost.length > 0) log.warn({ jobIds: lost }, 'jobs lost to another worker');
    } catch (err) {
      log.debug({ err }, 'locks not renewed');
    } finally {
      this.#unanswered -= 1;
    }
  }
}
