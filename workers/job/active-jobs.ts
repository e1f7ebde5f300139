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

interface RunningJob {
  readonly jobId: string;
  /** The chat that it is an attempt at. */
  readonly chatId: string;
}

/** Cancelled chats that are remembered at most: a megabyte or two. */
const maxRemembered = 10_000;

/**
 * The jobs that run in a pool, each with a signal of its own. Cancelled chats are remembered for a minute: a job of one may still be
 * on its way here from the queue when its cancel arrives, or be taken over from a worker that died.
 */
export class ActiveJobs {
  readonly #rememberedMs: number;
  readonly #now: () => number;
  /** Not by id: a job whose lock was lost can run here twice. */
  readonly #active = new Set<RunningJob & { controller: AbortController }>();
  /** When chats were cancelled, oldest first. */
  readonly #cancelled = new Map<string, number>();
  #abortedWith: Error | undefined;

  constructor({ rememberedMs = 60_000, now = Date.now }: ActiveJobsOptions = {}) {
    this.#rememberedMs = rememberedMs;
    this.#now = now;
  }

  /** Runs a job of this chat, under an id of its own unless it is the first; its signal aborts with `Cancelled`, with `LockLost`, or with the reason given to `abortAll`. */
  async run<T>(
    chatId: string,
    job: (signal: AbortSignal) => Promise<T>,
    { jobId = chatId }: { jobId?: string } = {},
  ): Promise<T> {
    const controller = new AbortController();
    this.#forgetOld();
    if (this.#abortedWith !== undefined) controller.abort(this.#abortedWith);
    else if (this.#cancelled.has(chatId)) controller.abort(new Cancelled());
    const entry = { jobId, chatId, controller };
    this.#active.add(entry);
    try {
      return await job(controller.signal);
    } finally {
      this.#active.delete(entry);
    }
  }

  /** Aborts the jobs of these chats where they run, and those that start within the next minute. */
  cancel(chatIds: readonly string[]): void {
    this.abort(chatIds, new Cancelled());
    for (const chatId of chatIds) {
      this.#cancelled.delete(chatId);
      this.#cancelled.set(chatId, this.#now());
    }
    this.#forgetOld();
  }

  /**
   * Aborts these jobs where they run, because their locks were lost, and returns those that do; one that starts again here is not
   * aborted.
   */
  abortLost(jobIds: readonly string[]): string[] {
    const ids = new Set(jobIds);
    const running = [...this.#active].filter(({ jobId }) => ids.has(jobId));
    for (const { controller } of running) controller.abort(new LockLost());
    return [...new Set(running.map(({ jobId }) => jobId))];
  }

  /** Aborts the jobs of these chats where they run. */
  abort(chatIds: readonly string[], reason: Error): void {
    const ids = new Set(chatIds);
    for (const { chatId, controller } of this.#active) if (ids.has(chatId)) controller.abort(reason);
  }

  /** Aborts all jobs, and every job that starts from now on. */
  abortAll(reason: Error): void {
    this.#abortedWith = reason;
    for (const { controller } of this.#active) controller.abort(reason);
  }

  #forgetOld(): void {
    for (const [chatId, at] of this.#cancelled) {
      if (this.#cancelled.size <= maxRemembered && this.#now() - at < this.#rememberedMs) return;
      this.#cancelled.delete(chatId);
    }
  }
}
