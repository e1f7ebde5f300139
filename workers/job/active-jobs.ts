/** Why a job is aborted whose caller no longer waits for it. */
export class Cancelled extends Error {
  override readonly name = 'Cancelled';
}

/** Why a job is aborted whose lock could not be renewed: another worker has it now, or will have it. */
export class LockLost extends Error {
  override readonly name = 'LockLost';
}

interface ActiveJobsOptions {
  /** How long cancelled jobs are remembered, in milliseconds. */
  rememberedMs?: number;
  now?: () => number;
}

/** Cancelled jobs that are remembered at most: a megabyte or two. */
const maxRemembered = 10_000;

/**
 * The jobs that run in a pool, each with a signal of its own. Cancelled jobs are remembered for a minute: one may still be
 * on its way here from the queue when its cancel arrives, or be taken over from a worker that died.
 */
export class ActiveJobs {
  readonly #rememberedMs: number;
  readonly #now: () => number;
  /** Not by id: a job whose lock was lost can run here twice. */
  readonly #active = new Set<{ jobId: string; controller: AbortController }>();
  /** When they were cancelled, oldest first. */
  readonly #cancelled = new Map<string, number>();
  #abortedWith: Error | undefined;

  constructor({ rememberedMs = 60_000, now = Date.now }: ActiveJobsOptions = {}) {
    this.#rememberedMs = rememberedMs;
    this.#now = now;
  }

  /** Runs the job; its signal aborts with `Cancelled`, with `LockLost`, or with the reason given to `abortAll`. */
  async run<T>(jobId: string, job: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const controller = new AbortController();
    this.#forgetOld();
    if (this.#abortedWith !== undefined) controller.abort(this.#abortedWith);
    else if (this.#cancelled.has(jobId)) controller.abort(new Cancelled());
    const entry = { jobId, controller };
    this.#active.add(entry);
    try {
      return await job(controller.signal);
    } finally {
      this.#active.delete(entry);
    }
  }

  /** Aborts these jobs where they run, and those that start within the next minute. */
  cancel(jobIds: readonly string[]): void {
    this.abort(jobIds, new Cancelled());
    for (const jobId of jobIds) {
      this.#cancelled.delete(jobId);
      this.#cancelled.set(jobId, this.#now());
    }
    this.#forgetOld();
  }

  /**
   * Aborts these jobs where they run, because their locks were lost, and returns those that do; one that starts again here is not
   * aborted.
   */
  abortLost(jobIds: readonly string[]): string[] {
    const running = new Set([...this.#active].map(({ jobId }) => jobId));
    this.abort(jobIds, new LockLost());
    return jobIds.filter((jobId) => running.has(jobId));
  }

  /** Aborts these jobs where they run. */
  abort(jobIds: readonly string[], reason: Error): void {
    const ids = new Set(jobIds);
    for (const { jobId, controller } of this.#active) if (ids.has(jobId)) controller.abort(reason);
  }

  /** Aborts all jobs, and every job that starts from now on. */
  abortAll(reason: Error): void {
    this.#abortedWith = reason;
    for (const { controller } of this.#active) controller.abort(reason);
  }

  #forgetOld(): void {
    for (const [jobId, at] of this.#cancelled) {
      if (this.#cancelled.size <= maxRemembered && this.#now() - at < this.#rememberedMs) return;
      this.#cancelled.delete(jobId);
    }
  }
}
